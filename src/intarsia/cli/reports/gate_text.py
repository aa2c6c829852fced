"""Messages for verdicts of the numeric gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.measure.judge.gate_report import GateReport
from intarsia.support.errors import VerificationError

MAX_ERROR_MEANS: Final = (
    "max error: largest difference to the reference result, relative to its largest value "
    "(errors beside a larger value hide in it, but not from the verdict)"
)


def difference_error(
    wrong: Sequence[tuple[str, GateReport]], agreeing: tuple[str, str] | None = None, random_note: str = ""
) -> VerificationError | None:
    """Return the error with the worst element of each wrong result; None without a wrong result.

    Args:
        wrong: Reports of the results that did not pass, by name.
        agreeing: Names of two wrong results that agree with each other.
        random_note: Hint for a model that draws random numbers; "" if it draws none.
    """
    if not wrong:
        return None
    (name, report), *others = wrong
    if not report.is_proven:
        names = ", ".join(name for name, _ in wrong)
        return VerificationError(f"{names} cannot be checked: {report.message}", help=random_note)
    agreement = (
        "" if agreeing is None else f"{' and '.join(agreeing)} agree: the reference may be what is wrong"
    )
    error = VerificationError(
        f"{name} differs from the reference: {report.message}", help=agreement or random_note
    )
    for other, other_report in others:
        error.add_note(f"{other} differs too: {other_report.message}")
    return error
