"""The decision of a panel of judges on one input set, and its text for reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.measure.judge.output_check import OutputCheck
from intarsia.measure.judge.reference_runs import ReferenceRuns

DETAILS: Final = "; "
"""Separates the details of a decision from each other."""

_LONGEST_REASON: Final = 120
"""Characters; onnx.reference lists all operators that it has."""


@dataclass(frozen=True, slots=True, eq=False)
class Ruling:
    """A decision on the right result.

    Attributes:
        runs: The result that counts as right, and the noise of the program.
        checks: Checks of candidates.
        judge: Name of the judge that computed the result.
        agreeing: Names of the judges that confirm it.
        difference: Largest difference among them, relative to the largest value of the output.
        outvoted: Names of the judges that were contradicted, each with what was wrong.
        failed: Names of the judges that raised an error, each with the error.
        refused: Names of the judges that cannot compile the program, each with the reason.
        is_proven: Whether judges of two groups agree, or there is only one and none failed.
        opaque: Names of the operators that no other judge has; () if others could confirm the result.
        defined: Names of registered operators, which all judges compute by their reference functions.
    """

    runs: ReferenceRuns
    checks: tuple[OutputCheck, ...]
    judge: str
    agreeing: tuple[str, ...]
    difference: float
    outvoted: tuple[tuple[str, str], ...]
    failed: tuple[tuple[str, str], ...]
    is_proven: bool
    refused: tuple[tuple[str, str], ...] = ()
    opaque: tuple[str, ...] = ()
    defined: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line for the report."""
        text = self.judge
        if self.opaque:
            text += f" alone, since no other judge has {', '.join(self.opaque)}"
        if self.defined:
            text += f" with the registered reference of {', '.join(self.defined)}"
        if self.agreeing:
            text += f", confirmed by {' and '.join(self.agreeing)} (difference {self.difference:.1e})"
        if not self.is_proven:
            text = self._doubt()
        verb = "outvoted" if self.is_proven else "in its eyes wrong"
        details = [f"{verb}: {name} ({reason})" for name, reason in self.outvoted]
        details += [f"failed: {name} ({reason})" for name, reason in self.failed]
        if not self.agreeing:
            details += [f"cannot compile it: {name} ({_shortened(reason)})" for name, reason in self.refused]
        return DETAILS.join((text, *details))

    def _doubt(self) -> str:
        """Return why nothing is proven."""
        if not self.outvoted:
            name, reason = self.failed[-1]
            return f"unproven: only {self.judge} computes it, and {name} fails ({_shortened(reason)})"
        names = " and ".join(name for name, _ in self.outvoted)
        return f"unproven: {self.judge} and {names} disagree, and no two judges agree"


def _shortened(reason: str) -> str:
    """Shorten a reason to a clause without semicolons, which separate details."""
    text = reason.replace(DETAILS, ", ")
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."
