"""How outputs of a program are judged: a protocol, and the kinds that are registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

from intarsia.measure.judge.gate_report import Array, GateReport
from intarsia.support.registry import Registry

Facts = Mapping[str, Any]
"""What JSON holds."""


class OutputCheck(Protocol):
    """Judges one output of a program, or several that mean something together (values and indices of a TopK).

    A check is made once, with the reference result, and used in other processes: `facts` and `arrays` are
    written to files, and `restored` makes the check again.

    Attributes:
        kind: Registered name.
    """

    kind: ClassVar[str]

    @property
    def positions(self) -> tuple[int, ...]:
        """Which outputs of the program it judges."""

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """Judge the outputs at its positions; number of outputs is that of the program, nothing else is sure.

        Args:
            outputs: All outputs of the candidate, in order.
        """

    def around(self, outputs: Sequence[Array]) -> Self:
        """The same check with another result in the place of the expected one, with the same noise.

        Args:
            outputs: All outputs of the program, of the shapes and types that are expected.
        """

    def loosened(self, bound: float) -> OutputCheck:
        """The check of a program that may be off by `bound`, as a fraction of the norm of each output."""

    def facts(self) -> Facts:
        """What it is made of besides arrays and the expected outputs."""

    def arrays(self) -> Mapping[str, Array]:
        """What it is made of besides facts and the expected outputs; mapped from a file later."""

    @classmethod
    def restored(cls, facts: Facts, arrays: Mapping[str, Array], expected: Sequence[Array]) -> Self:
        """Make it again.

        Args:
            facts: As `facts` gave them, through JSON.
            arrays: As `arrays` gave them.
            expected: All outputs of the reference.
        """


CHECK_KINDS: Registry[type[OutputCheck]] = Registry("check of outputs", "intarsia.output_checks")
"""Kinds of this package, and those that installed packages announce as entry points of that group."""
