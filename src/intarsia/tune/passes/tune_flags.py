"""Options of toolchains that change speed only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from intarsia.support.errors import UsageError
from intarsia.target import TARGET_OPTIONS, OptionValue, TargetOption, toolchain_options
from intarsia.target.cpu import usable_cores
from intarsia.target.option import option_text
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import target_of
from intarsia.tune.instruction import Instruction
from intarsia.tune.strategy import Greedy, Strategy
from intarsia.tune.target_options import MarkedFunction, given_functions, set_target_options
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

AS_IT_IS: Final = "as it is"
"""The decision to leave options as they are; it stands first, and wins ties."""

THREADS: Final = "threads"


@register_pass
@dataclass(frozen=True)
class TuneFlags(TuningPass, opt_level=0):
    """Decides on the options of toolchains that change speed and not results: threads, session options, LLVM.

    Each flag of each toolchain that the program gives functions to is a decision of its own, the number of
    threads first. The default strategy decides one after the other and keeps what clearly pays, so that
    candidates are about as many as there are values in all, not their product.

    Attributes:
        toolchains: Names of the toolchains to tune; all toolchains of the program's functions if empty.
        flags: Names of the flags; threads and all flags of a toolchain that keep results if empty.
        threads: Numbers of threads; 1, 2, 4, ... and all cores if empty.
        functions: Names of the functions to tune, all with the same flags; all of a toolchain if empty.
        target: Target of the whole program if it assigns no function to a toolchain; the evaluator's target
            if empty.

    Raises:
        UsageError: A flag is unknown, changes results, or has no values that can be listed; there is a number
            of threads below 1; or no function has a toolchain.
    """

    strategy: Strategy = field(default_factory=Greedy, kw_only=True)
    toolchains: tuple[str, ...] = field(default=(), kw_only=True)
    flags: tuple[str, ...] = field(default=(), kw_only=True)
    threads: tuple[int, ...] = field(default=(), kw_only=True)
    functions: tuple[str, ...] = field(default=(), kw_only=True)
    target: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        for name in ("toolchains", "flags", "threads", "functions"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        for flag in self.flags:
            _refuse_untunable(TARGET_OPTIONS[flag])
        for count in self.threads:
            TARGET_OPTIONS[THREADS].check(count)

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        """Return an instruction for each toolchain and flag; one without an alternative if there is none."""
        placement, functions = given_functions(trace.out_mod, self.target or target_of(ctx.evaluator))
        selected = [
            function for function in functions if not self.functions or function.name in self.functions
        ]
        present = dict.fromkeys(str(function.target.toolchain) for function in selected)
        decisions = [
            decision
            for toolchain in present
            if not self.toolchains or toolchain in self.toolchains
            for decision in self._decisions(toolchain, selected)
        ]
        return [*placement, *decisions] or [Instruction("flags", {AS_IT_IS: Choice()})]

    def _decisions(self, toolchain: str, functions: Sequence[MarkedFunction]) -> Iterator[Instruction]:
        targets = [function.target for function in functions if function.target.toolchain == toolchain]
        for option in self._options(toolchain):
            values = self._values(option)
            present = {target.option(option.name) for target in targets}
            present = {option.default if value is None else value for value in present}
            if option.name == THREADS and None in present:
                present = {usable_cores(Path("/")) if value is None else value for value in present}
            others = [value for value in values if present != {value}]
            if others:
                choices = {option_text(value): self._choice(toolchain, option, value) for value in others}
                yield Instruction(f"{toolchain} -{option.name}", {AS_IT_IS: Choice(), **choices})

    def _options(self, toolchain: str) -> Iterator[TargetOption]:
        """The options that are decided, of those that the toolchain understands."""
        tunable = (option.name for option in toolchain_options(toolchain) if _is_tuned(option))
        for name in self.flags or (THREADS, *tunable):
            if TARGET_OPTIONS[name].is_understood_by(toolchain):
                yield TARGET_OPTIONS[name]

    def _values(self, option: TargetOption) -> Sequence[OptionValue]:
        if option.name != THREADS:
            return option.values
        cores = usable_cores(Path("/"))
        doubled = (2**power for power in range(cores.bit_length()))
        return self.threads or tuple(dict.fromkeys((*doubled, cores)))

    def _choice(self, toolchain: str, option: TargetOption, value: OptionValue) -> Choice:
        """Return the choice of a value; the default unsets the option: equal programs have one digest."""
        written = None if value == option.default else value
        some = {"functions": list(self.functions)} if self.functions else {}
        return Choice(set_target_options, {"toolchain": toolchain, "options": {option.name: written}, **some})


def _is_tuned(option: TargetOption) -> bool:
    return bool(option.values) and option.keeps_results and option.is_tuned


def _refuse_untunable(option: TargetOption) -> None:
    if not option.keeps_results:
        raise UsageError(
            f"-{option.name} changes results, so that it is no flag", help="TunePrecision decides on it"
        )
    if not option.values and option.name != THREADS:
        raise UsageError(f"-{option.name} has no values to choose from", help=option.help)
