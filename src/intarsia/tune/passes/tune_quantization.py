"""Whether the layers of a program are computed in 8-bit integers, within a bound on the error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from intarsia.ir import IRModule
from intarsia.measure.judge.accuracy import with_error_bound
from intarsia.support.errors import UsageError
from intarsia.support.free_names import free_name
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction
from intarsia.tune.quantise.calibration_record import CalibrationRecord
from intarsia.tune.quantise.calibrators import check_method
from intarsia.tune.quantise.quantised import quantised
from intarsia.tune.strategy import Greedy, Strategy
from intarsia.tune.target_options import marked_functions
from intarsia.tune.trace import Trace
from intarsia.tune.tuned_candidate import Decision
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

AS_IT_IS: Final = "as it is"
"""The decision to keep float32; it stands first, and wins ties."""

_NAME: Final = "quantisation"

ALL: Final = "all"
"""The set of all layers."""


@register_pass
@dataclass(frozen=True)
class TuneQuantization(TuningPass, opt_level=0):
    """Decides which layers of a program are computed in 8-bit integers, with ranges from a calibration.

    The program must not be placed yet; each target then decides for itself. Results differ by more than
    rounding explains, so a bound on the error is given. A program in integers carries it, is checked against
    it on inputs like those of the calibration, and is refused if an error is larger, however fast it is.

    Attributes:
        tolerance: Largest error allowed, as a fraction of the norm of each output.
        record: Ranges of the values, as `calibration_record` returns them for the annotated program.
        method: Calibrator that the ranges are from.
        layers: Sets of layers to choose from: "all", or numbers as of `AnnotateQuantization`, "0 3 4".

    Raises:
        UsageError: The bound is no positive number, the record is malformed, there is no such calibrator, or
            a set of layers cannot be read.
    """

    strategy: Strategy = field(default_factory=Greedy, kw_only=True)
    tolerance: float = field(kw_only=True)
    record: str = field(kw_only=True)
    method: str = field(default="minmax", kw_only=True)
    layers: tuple[str, ...] = field(default=(ALL,), kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        with_error_bound(IRModule({}), self.tolerance)
        CalibrationRecord.from_text(self.record)
        check_method(self.method, 100)
        for text in self.layers:
            read_layers(text)

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:  # noqa: ARG002  # of all passes
        """Return one instruction; without an alternative if the program is placed."""
        is_placed = any(marked_functions(trace.out_mod))
        return [Instruction(_NAME, {AS_IT_IS: Choice(), **({} if is_placed else self.choices())})]

    def choices(self) -> dict[str, Choice]:
        """Return the choices beside float32, by what they are called."""
        facts = {"record": self.record, "method": self.method, "bound": self.tolerance}
        return {
            f"int8 in {_named(text)}": Choice(quantised, {**facts, "layers": list(read_layers(text))})
            for text in self.layers
        }

    def decisions(self) -> dict[str, Decision]:
        """Return each choice as a decision of a trace, by a short name: "int8", "int8 in 3 layers"."""
        decisions: dict[str, Decision] = {}
        for text, (key, choice) in zip(self.layers, self.choices().items(), strict=True):
            decisions[free_name(_short(text), decisions, " ({})", 2)] = f"{_NAME}: {key}", choice
        return decisions


def read_layers(text: str) -> tuple[int, ...]:
    """Return the numbers of a set of layers; () for all.

    Raises:
        UsageError: The text is neither "all" nor numbers.
    """
    if text == ALL:
        return ()
    words = text.split()
    if not words or not all(word.isascii() and word.isdigit() for word in words):
        raise UsageError(f'layers has {text!r}, expected "all" or numbers such as "0 3 4"')
    return tuple(map(int, words))


def _short(text: str) -> str:
    count = len(read_layers(text))
    return f"int8 in {count} layers" if count else "int8"


def _named(text: str) -> str:
    count = len(read_layers(text))
    return f"{count} layers: {text}" if count else "all layers"
