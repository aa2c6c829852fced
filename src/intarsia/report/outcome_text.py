"""Outcomes of candidates in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.report.explained_function import Fate, Rival, Tried
from intarsia.report.explanation import ContestRecord
from intarsia.support.units import duration_text

_EQUAL: Final = 0.005
"""Relative width below which a loss interval is shown as one number."""


def to_win_text(rival: Rival) -> str:
    """Return what would have to change for a runner-up to win."""
    if rival.loss <= 0:
        less = duration_text(-rival.loss)
        return f"by parts it takes {less} less; measuring whole models decided against it"
    more = f"it takes {duration_text(rival.loss)} more"
    if rival.faster >= 1:
        return f"{more}; it cannot win by being faster, because its boundaries alone cost more"
    return f"{more}; to win it would have to be {rival.faster:.1%} faster"


def whole_to_win_text(contest: Sequence[ContestRecord]) -> str:
    """Return what would have to change for another candidate for the whole model to win; "" if none raced."""
    others = [record for record in contest if record.ratio is not None and not record.is_chosen]
    closest = min(others, key=lambda record: record.ratio or 0.0, default=None)
    if closest is None or closest.ratio is None:
        return ""
    name = f"of the other whole programs {closest.name} is the closest"
    if closest.ratio <= 1:
        return f"{name}: it is as fast within noise"
    return f"{name}: to win it would have to be {1 - 1 / closest.ratio:.1%} faster"


def fate_text(tried: Tried) -> str:
    """Return the outcome of a candidate, and its loss."""
    if tried.fate is not Fate.LOST:
        return f"{tried.fate}: {tried.message}" if tried.message else str(tried.fate)
    low, high = tried.loss_low, tried.loss_high
    if high is None:
        if low is None:
            return "lost: the cost of the other operators is unknown"
        return f"lost: at least {duration_text(low)} more" if low > 0 else "lost"
    if high == 0:
        return "lost where whole models were measured; by parts it takes as long"
    if high < 0:
        return f"lost where whole models were measured; by parts it takes {duration_text(-high)} less"
    if low is None or low <= 0:
        return f"lost: up to {duration_text(high)} more"
    if high - low <= _EQUAL * high:
        return f"lost: {duration_text(high)} more"
    return f"lost: {duration_text(low)} to {duration_text(high)} more"
