"""Candidates of an explanation as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from intarsia.cli.reports.table import Table
from intarsia.cli.reports.units import NOTHING, duration_text, interval_text
from intarsia.driver.explain.explained_function import Fate, Tried

_EQUAL: Final = 0.005
"""Losses that differ by less than this part are told as one."""


def candidate_table(first: str, rows: Sequence[tuple[str, Tried]], *, is_tuned: bool) -> Table:
    """A row for each candidate.

    Args:
        first: What the first column is called.
        rows: What stands in it, and the candidate.
        is_tuned: Whether something was chosen, or would be.
    """
    headers = (first, "candidate", "operators", "nodes", "alone", "interval", "what became of it")
    texts = tuple(
        (
            text,
            tried.spec,
            tried.label,
            tried.nodes,
            optional_duration(tried.seconds),
            optional_interval(tried.low, tried.high),
            fate_text(tried) if is_tuned or tried.fate is not Fate.CHOSEN else "would be chosen",
        )
        for text, tried in rows
    )
    return Table(headers, texts, frozenset({4}))


def untried_lines(tried: Sequence[Tried]) -> list[str]:
    """How many of some candidates were not tried, by reason."""
    reasons = Counter(each.message for each in tried if each.fate is Fate.NOT_TRIED)
    return [f"{candidates_text(count)} not tried: {reason}" for reason, count in reasons.most_common()]


def candidates_text(count: int) -> str:
    """A number of candidates: "1 candidate"."""
    return f"{count} candidate{'' if count == 1 else 's'}"


def fate_text(tried: Tried) -> str:
    """What became of a candidate, and by how much it lost."""
    if tried.fate is not Fate.LOST:
        return f"{tried.fate}: {tried.message}" if tried.message else str(tried.fate)
    low, high = tried.loss_low, tried.loss_high
    if high is None:
        if low is None:
            return "lost: what would have to run beside it is not known"
        return f"lost: at least {duration_text(low)} more" if low > 0 else "lost"
    if high <= 0:
        return f"lost where whole models were measured; by parts it takes {duration_text(-high)} less"
    if low is None or low <= 0:
        return f"lost: up to {duration_text(high)} more"
    if high - low <= _EQUAL * high:
        return f"lost: {duration_text(high)} more"
    return f"lost: {duration_text(low)} to {duration_text(high)} more"


def optional_duration(seconds: float | None) -> str:
    """A duration, or "-"."""
    return NOTHING if seconds is None else duration_text(seconds)


def optional_interval(low: float | None, high: float | None) -> str:
    """An interval of durations, or "-"."""
    return NOTHING if low is None or high is None else interval_text(low, high)
