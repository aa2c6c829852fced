"""The expected result of a program, and the check of candidates against it (DESIGN idea 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Self

from intarsia.ir import IRModule
from intarsia.measure.judge.compare_outputs import holds_only_nan
from intarsia.measure.judge.gate_report import Array, GateReport
from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.quorum import DEFAULT_LIMITS, JudgeLimits, Panel, checked
from intarsia.measure.judge.ruling import DETAILS, Ruling
from intarsia.measure.judge.steps.range_check import UNSTABLE_SHARE, RangeCheck
from intarsia.measure.judge.steps.selection_check import SelectionCheck
from intarsia.measure.judge.tolerance import Tolerance, tolerance_for
from intarsia.measure.judge.tolerance_check import ToleranceCheck
from intarsia.measure.whole_run import run_arrays
from intarsia.measure.work import work_of
from intarsia.support.callbacks import silent

__all__ = ["Gate", "run_arrays"]

_OTHER_INPUTS: Final = "give inputs for which the model computes numbers"


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """The expected result of a program for one input set, with the checks of its outputs.

    Attributes:
        names: The outputs' names.
        expected: The reference result.
        checks: Checks that cover all outputs.
        reference: Origin of the reference result, for messages.
        is_proven: Whether judges agree on it; if not, nothing passes.
    """

    names: tuple[str, ...]
    expected: tuple[Array, ...]
    checks: tuple[OutputCheck, ...]
    reference: str
    is_proven: bool = True

    @classmethod
    def for_module(
        cls,
        module: IRModule,
        inputs: Mapping[str, Array],
        limits: JudgeLimits = DEFAULT_LIMITS,
        on_judge: Callable[[str], object] = silent,
    ) -> Gate:
        """Compute the expected result of a module without marked toolchains, with a panel of judges.

        Args:
            module: Program; its @main is computed.
            inputs: Arrays by parameter name.
            limits: Limits of the panel, and its judges.
            on_judge: Called with the name of each judge that starts, as for `Panel`.

        Raises:
            IntarsiaError: No judge can compute it.
        """
        with Panel(module, limits, on_judge) as panel:
            return cls.of_ruling(panel.ruling(inputs))

    @classmethod
    def of_ruling(cls, ruling: Ruling) -> Gate:
        """Return the gate of a panel's ruling."""
        runs = ruling.runs
        gate = cls(runs.names, runs.outputs, ruling.checks, str(ruling), ruling.is_proven)
        text = gate.reference + "".join(_notes(gate))
        return replace(gate, reference=text)

    @classmethod
    def known(cls, module: IRModule, expected: Sequence[Array]) -> Gate:
        """Return the gate of a module with a given result, flat and in order."""
        work = work_of(module)
        tolerances = [
            tolerance_for(array.dtype, work.reduction_length, work.depth, work.quantized)
            for array in expected
        ]
        names = [f"output_{number}" for number in range(len(expected))]
        return cls.by_tolerance(names, expected, tolerances, "known")

    @classmethod
    def by_tolerance(
        cls, names: Sequence[str], expected: Sequence[Array], tolerances: Sequence[Tolerance], reference: str
    ) -> Gate:
        """Return a gate with one allowed difference for each output."""
        parts = enumerate(zip(names, expected, tolerances, strict=True))
        checks = tuple(ToleranceCheck(number, *part) for number, part in parts)
        return cls(tuple(names), tuple(expected), checks, reference)

    @classmethod
    def stand_in(cls, module: IRModule, inputs: Mapping[str, Array]) -> Gate:
        """Compute the expected result as `for_module` does, but from the first judge alone.

        It is for values that have other checks later, such as inner values of a program.
        """
        return cls.for_module(module, inputs, JudgeLimits(is_checked=False))

    @property
    def tolerances(self) -> tuple[Tolerance | None, ...]:
        """Allowed difference of each output with a single one; None for the others."""
        return tuple(check.tolerance if isinstance(check, ToleranceCheck) else None for check in self.checks)

    @property
    def unproven(self) -> tuple[str, ...]:
        """Names of outputs with NaN and no finite element: their equality proves nothing."""
        pairs = zip(self.names, self.expected, strict=True)
        return tuple(name for name, array in pairs if holds_only_nan(array))

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """Compare a candidate's outputs, flat and in order, with the reference.

        Where the reference has no numbers at all, or judges do not agree on it, nothing passes.
        """
        report = checked(self.checks, outputs, len(self.names))
        if not self.is_proven:
            message = f"the expected result is {self.reference.partition(DETAILS)[0]}"
            return replace(report, passed=False, message=message, is_proven=False)
        unproven = self.unproven
        if not report.passed or not unproven or len(unproven) < len(self.names):
            return report
        message = f"every output of the reference is NaN, so that nothing can be verified; {_OTHER_INPUTS}"
        return replace(report, passed=False, message=message, is_proven=False)

    def around(self, outputs: Sequence[Array], reference: str) -> Self:
        """Return the gate with another expected result of the same program."""
        checks = tuple(check.around(outputs) for check in self.checks)
        return replace(self, expected=tuple(outputs), checks=checks, reference=reference)

    def loosened(self, bound: float) -> Self:
        """Return the gate with an error bound, a fraction of the norm of each output."""
        return replace(self, checks=tuple(check.loosened(bound) for check in self.checks))

    def agreeing(self, results: Mapping[str, Sequence[Array]]) -> tuple[str, str] | None:
        """Return the names of two results that agree with each other; None if all differ.

        Two engines that agree against the reference are a hint that the reference is wrong.
        """
        pairs = combinations(results, 2)
        return next((pair for pair in pairs if self._agree(*(results[name] for name in pair))), None)

    def _agree(self, first: Sequence[Array], second: Sequence[Array]) -> bool:
        pairs = zip(first, self.expected, strict=False)
        if len(first) != len(self.names) or any(a.shape != e.shape or a.dtype != e.dtype for a, e in pairs):
            return False
        return checked(self.around(first, "").checks, second, len(self.names)).passed


def _notes(gate: Gate) -> Iterator[str]:
    """Yield notes about outputs that the input set does not test."""
    empty = [name for name, array in zip(gate.names, gate.expected, strict=True) if not array.size]
    unstable = [
        f"{100 * check.undecided:.3g} % of {' and '.join(gate.names[number] for number in check.positions)}"
        for check in gate.checks
        if isinstance(check, RangeCheck | SelectionCheck) and check.undecided > UNSTABLE_SHARE
    ]
    if gate.unproven:
        yield f"; NaN in all of output {_quoted(gate.unproven)}, which proves nothing of it"
    if empty:
        yield f"; no elements in output {_quoted(empty)}, which proves nothing of it"
    if unstable:
        yield f"; unstable output: {', '.join(unstable)} lies within noise of a step"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
