"""Results of a step: any value is right that the step has within the noise of its argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from intarsia.measure.judge.gate_report import (
    EQUAL,
    Array,
    GateReport,
    WorstElement,
    structural_complaint,
    structure_report,
)
from intarsia.measure.judge.output_check import CHECK_KINDS, Facts

UNSTABLE_SHARE = 0.01
"""With more undecided elements than this share, an input set says little about the output."""


@dataclass(frozen=True, slots=True, eq=False)
class RangeCheck:
    """A check of elements against the values of a step on either side of its argument's noise.

    Attributes:
        position: Number of the output.
        name: Name of the output.
        expected: Reference result.
        low: Smallest right value of each element.
        high: Largest right value of each element.
    """

    kind: ClassVar[str] = "range"

    position: int
    name: str
    expected: Array
    low: Array
    high: Array

    @property
    def positions(self) -> tuple[int, ...]:
        """See OutputCheck.positions."""
        return (self.position,)

    @property
    def undecided(self) -> float:
        """Share of the elements that may go either way."""
        return float(np.mean(self.low != self.high)) if self.low.size else 0.0

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """See OutputCheck.check."""
        actual = np.asarray(outputs[self.position])
        if complaint := structural_complaint(actual, self.expected):
            return structure_report(f'output "{self.name}" has {complaint}')
        wrong = np.flatnonzero(~((actual >= self.low) & (actual <= self.high)))
        if wrong.size:
            worst = WorstElement.of(self.name, int(wrong[0]), actual, self.expected, 0.0)
            return GateReport(False, 1.0, 1.0, worst, f"{worst}, and no step is near", np.inf)
        differing = int(np.count_nonzero(actual != self.expected))
        return GateReport(True, float(differing > 0), 0.0, None, self._message(differing), 0.0)

    def _message(self, differing: int) -> str:
        if self.undecided > UNSTABLE_SHARE:
            share = f"{100 * self.undecided:.3g} % of it lies within noise of a step"
            return f'unstable output "{self.name}": {share}'
        text = f'{differing} elements of output "{self.name}" lie on the other side of a step'
        return text if differing else EQUAL

    def around(self, outputs: Sequence[Array]) -> Self:
        """See OutputCheck.around: what is right follows from the argument of the step, not from a result."""
        return replace(self, expected=outputs[self.position])

    def loosened(self, bound: float) -> RangeCheck:  # noqa: ARG002  # steps of a bound are not known
        """See OutputCheck.loosened."""
        return self

    def facts(self) -> Facts:
        """See OutputCheck.facts."""
        return {"position": self.position, "name": self.name}

    def arrays(self) -> Mapping[str, Array]:
        """See OutputCheck.arrays."""
        return {"low": self.low, "high": self.high}

    @classmethod
    def restored(cls, facts: Facts, arrays: Mapping[str, Array], expected: Sequence[Array]) -> Self:
        """See OutputCheck.restored."""
        position = int(facts["position"])
        return cls(position, facts["name"], expected[position], arrays["low"], arrays["high"])


CHECK_KINDS.register(RangeCheck.kind, RangeCheck)
