"""Verdicts of the numeric gate in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.measure.compare_outputs import GateReport
from intarsia.support.errors import VerificationError

MAX_ERROR_MEANS: Final = (
    "max error: largest difference to the reference result, relative to its largest value"
)


def difference_error(wrong: Sequence[tuple[str, GateReport]]) -> VerificationError | None:
    """The error that names the worst element of each wrong result; None if there is no wrong result."""
    if not wrong:
        return None
    (name, verdict), *others = wrong
    error = VerificationError(f"{name} differs from the reference: {verdict.message}")
    for other, other_verdict in others:
        error.add_note(f"{other} differs too: {other_verdict.message}")
    return error
