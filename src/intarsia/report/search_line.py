"""The search for partitions, and its errors, in a line each."""

from __future__ import annotations

from typing import Final

from intarsia.report.explained_function import SearchRecord
from intarsia.report.explanation import Losses
from intarsia.support.units import duration_text

_UNKNOWN: Final = 0.995
"""Gap above which the bound is not shown: it says nothing about the optimum."""


def search_line(search: SearchRecord) -> str:
    """Describe the search: candidates, time, and the optimality gap."""
    failed = f", {search.failed} failed" if search.failed else ""
    reused = f", {search.known} known before" if search.known else ""
    if search.is_exact:
        proof = "the cheapest by these costs"
    elif search.gap < _UNKNOWN:
        proof = f"at most {search.gap:.1%} above the cheapest by these costs"
    else:
        proof = "how far from the cheapest is not known"
    return (
        f"partitions: {search.candidates} candidates, {search.measured} measured{reused}{failed}, "
        f"searched in {duration_text(search.seconds)}; {proof}"
    )


def loss_line(losses: Losses) -> str:
    """Describe the losses of the best predicted partitioning: absolute, and relative to its latency."""
    parts = [
        f"additive error {_signed(losses.additive_error, losses.measured)}",
        f"optimality loss {_optimality(losses)}",
    ]
    if losses.apparent_loss is not None:
        parts.append(f"apparent loss {_signed(losses.apparent_loss, losses.measured)} against {losses.own}")
    return f"the search's answer, {losses.subject}: {', '.join(parts)}"


def _signed(seconds: float, of: float) -> str:
    if seconds == 0:
        return "none"
    sign = "+" if seconds > 0 else "-"
    return f"{sign}{duration_text(abs(seconds))} ({seconds / of:+.1%})"


def _optimality(losses: Losses) -> str:
    low, high = losses.optimality_loss_low, losses.optimality_loss_high
    if high <= low:
        return _signed(low, losses.measured)
    return f"{duration_text(low)} to {duration_text(high)}" if low else f"at most {duration_text(high)}"
