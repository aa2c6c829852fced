"""Verdicts of the numeric gate in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.measure.judge.gate_report import GateReport
from intarsia.support.errors import VerificationError

MAX_ERROR_MEANS: Final = (
    "max error: largest difference to the reference result, relative to its largest value"
)


def difference_error(
    wrong: Sequence[tuple[str, GateReport]], agreeing: tuple[str, str] | None = None
) -> VerificationError | None:
    """The error that names the worst element of each wrong result; None if there is no wrong result.

    Args:
        wrong: The results by name.
        agreeing: Two of them that agree with each other.
    """
    if not wrong:
        return None
    (name, verdict), *others = wrong
    help_line = (
        "" if agreeing is None else f"{' and '.join(agreeing)} agree: the reference may be what is wrong"
    )
    error = VerificationError(f"{name} differs from the reference: {verdict.message}", help=help_line)
    for other, other_verdict in others:
        error.add_note(f"{other} differs too: {other_verdict.message}")
    return error
