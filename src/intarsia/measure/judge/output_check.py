"""The protocol of checks of outputs, and the registry of their kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

from intarsia.measure.judge.gate_report import Array, GateReport
from intarsia.support.registry import Registry

Facts = Mapping[str, Any]
"""Plain values that JSON can represent."""


class OutputCheck(Protocol):
    """Checks one output of a program, or several that belong together (values and indices of a TopK).

    A check is made once, with the reference result, and used in other processes: `facts` and `arrays` are
    written to files, and `restored` makes the check again.

    Attributes:
        kind: Registered name.
    """

    kind: ClassVar[str]

    @property
    def positions(self) -> tuple[int, ...]:
        """Numbers of the outputs that it checks."""

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """Check the outputs at its positions; only the number of outputs is known to be right.

        Args:
            outputs: All outputs of the candidate, in order.
        """

    def around(self, outputs: Sequence[Array]) -> Self:
        """Return the check with another expected result and the same noise.

        Args:
            outputs: All outputs of the program, with the expected shapes and types.
        """

    def loosened(self, bound: float) -> OutputCheck:
        """Return the check with an error bound, a fraction of the norm of each output."""

    def facts(self) -> Facts:
        """Return its fields other than arrays and the expected outputs."""

    def arrays(self) -> Mapping[str, Array]:
        """Return its arrays other than the expected outputs; they are mapped from a file later."""

    @classmethod
    def restored(cls, facts: Facts, arrays: Mapping[str, Array], expected: Sequence[Array]) -> Self:
        """Make the check from its stored parts.

        Args:
            facts: Value of `facts()`, after JSON.
            arrays: Value of `arrays()`.
            expected: All outputs of the reference.
        """


CHECK_KINDS: Registry[type[OutputCheck]] = Registry("check of outputs", "intarsia.output_checks")
"""Kinds of this package, and kinds that other packages register as entry points of that group."""
