"""An output judged by a fixed tolerance: exact types, and values of which only the reference is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, Final, Self

from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.judge.compare_outputs import compare
from intarsia.measure.judge.gate_report import Array, GateReport
from intarsia.measure.judge.output_check import CHECK_KINDS, Facts
from intarsia.measure.judge.tolerance import Tolerance

_FLOATS: Final = frozenset({ElementKind.FLOAT, ElementKind.COMPLEX})


@dataclass(frozen=True, slots=True, eq=False)
class ToleranceCheck:
    """A check with one allowed difference for all elements of an output (see `Tolerance`).

    Attributes:
        position: Number of the output.
        name: The output's name.
        expected: The reference result.
        tolerance: The allowed difference.
    """

    kind: ClassVar[str] = "tolerance"

    position: int
    name: str
    expected: Array
    tolerance: Tolerance

    @property
    def positions(self) -> tuple[int, ...]:
        """See OutputCheck.positions."""
        return (self.position,)

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """See OutputCheck.check."""
        return compare([outputs[self.position]], [self.expected], [self.name], [self.tolerance])

    def around(self, outputs: Sequence[Array]) -> Self:
        """See OutputCheck.around."""
        return replace(self, expected=outputs[self.position])

    def loosened(self, bound: float) -> ToleranceCheck:
        """See OutputCheck.loosened: integers, truth values and texts must be what they were."""
        if element_kind(self.expected.dtype) not in _FLOATS:
            return self
        return replace(self, tolerance=Tolerance(atol_scale=bound))

    def facts(self) -> Facts:
        """See OutputCheck.facts."""
        return {"position": self.position, "name": self.name, "tolerance": asdict(self.tolerance)}

    def arrays(self) -> Mapping[str, Array]:
        """See OutputCheck.arrays."""
        return {}

    @classmethod
    def restored(cls, facts: Facts, arrays: Mapping[str, Array], expected: Sequence[Array]) -> Self:  # noqa: ARG003  # has no arrays
        """See OutputCheck.restored."""
        position = int(facts["position"])
        return cls(position, facts["name"], expected[position], Tolerance(**facts["tolerance"]))


CHECK_KINDS.register(ToleranceCheck.kind, ToleranceCheck)
