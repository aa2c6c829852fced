"""What each pass did to the size of a program."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from intarsia.ir import Call, Constant, Function, IRModule, Op, post_order
from intarsia.transform.instrument.open_runs import OpenRuns
from intarsia.transform.instrument.pass_instrument import PassInstrument
from intarsia.transform.pass_info import PassInfo


@dataclass(frozen=True, slots=True)
class ProgramSize:
    """The size of a program.

    Attributes:
        operators: Number of calls of each operator, by name.
        functions: Number of global functions.
        constant_bytes: Size of all constants in bytes.
    """

    operators: Counter[str]
    functions: int
    constant_bytes: int

    @classmethod
    def of(cls, mod: IRModule) -> ProgramSize:
        """Count the calls and constants of a program; a shared one counts once."""
        operators: Counter[str] = Counter()
        constants: set[Constant] = set()
        for function in mod.functions.values():
            for expr in post_order(function) if isinstance(function, Function) else ():
                if isinstance(expr, Call) and isinstance(expr.op, Op):
                    operators[str(expr.op)] += 1
                elif isinstance(expr, Constant):
                    constants.add(expr)
        return cls(operators, len(mod.functions), sum(constant.data.nbytes for constant in constants))


@dataclass(frozen=True, slots=True)
class PassStatistic:
    """The sizes of a program before and after a pass.

    Attributes:
        name: The pass.
        before: Size of the program that it was given.
        after: Size of the program that it returned.
        is_changed: Whether it returned another program.
        is_innermost: Whether no other pass ran inside it.
    """

    name: str
    before: ProgramSize
    after: ProgramSize
    is_changed: bool
    is_innermost: bool

    @property
    def removed(self) -> Counter[str]:
        """Number of calls that the pass has removed, by operator."""
        return self.before.operators - self.after.operators

    @property
    def added(self) -> Counter[str]:
        """Number of calls that the pass has added, by operator."""
        return self.after.operators - self.before.operators

    @property
    def change(self) -> str:
        """`-BatchNormalization x2, +Mul x2`; "" if the operators are the same."""
        parts = [
            f"{sign}{name}" + (f" x{count}" if count > 1 else "")
            for sign, counts in (("-", self.removed), ("+", self.added))
            for name, count in sorted(counts.items())
        ]
        return ", ".join(parts)


class PassStatistics(PassInstrument):
    """Counts operators and constants before and after every pass.

    Attributes:
        runs: One entry a run, in the order in which the passes returned.
    """

    def __init__(self) -> None:
        self.runs: list[PassStatistic] = []
        self._open: OpenRuns[tuple[IRModule, ProgramSize, int]] = OpenRuns()
        self._last: tuple[IRModule, ProgramSize] | None = None

    def enter_pass_ctx(self) -> None:
        """Start anew, unless a pass enters the context that it runs under."""
        if self._open.enter_context():
            self.runs, self._last = [], None

    def exit_pass_ctx(self) -> None:
        """Forget the passes that an exception has left open."""
        self._open.exit_context()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Count what the pass is given."""
        self._open.push(info.name, (mod, self._size(mod), len(self.runs)))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Count what it returned."""
        start, _ = self._open.pop(info.name)
        if start is not None:
            before, size, earlier = start
            is_innermost = len(self.runs) == earlier
            self.runs.append(PassStatistic(info.name, size, self._size(mod), mod is not before, is_innermost))

    def _size(self, mod: IRModule) -> ProgramSize:
        if self._last is None or self._last[0] is not mod:
            self._last = (mod, ProgramSize.of(mod))
        return self._last[1]
