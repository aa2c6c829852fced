"""Table of latencies at several sizes of the symbolic dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from intarsia.cli.arguments.target import target_text
from intarsia.cli.reports.table import Table
from intarsia.report.verdict import elements
from intarsia.support.units import duration_text

if TYPE_CHECKING:
    from intarsia.tune.contest.candidate_record import CandidateRecord


def size_tables(candidates: Sequence[CandidateRecord]) -> tuple[Table, ...]:
    """Return a table with a row for each timed size and a column for each candidate; none for a static model.

    The last column is the latency of the winner relative to the fastest other candidate at the size.
    """
    from intarsia.target import Target

    raced = [record for record in candidates if record.by_size]
    chosen = next((record for record in raced if record.chosen), None)
    if chosen is None:
        return ()
    others = [dict(record.by_size) for record in raced if record is not chosen]
    names = [target_text(Target.parse(item.target)) if item.is_whole else item.name for item in raced]
    rows = []
    for sizes, seconds in sorted(chosen.by_size, key=lambda pair: elements(pair[0])):
        best = min((other[sizes] for other in others if sizes in other), default=None)
        ratio = "-" if best is None else f"{seconds / best:.3f}"
        latencies = (dict(record.by_size).get(sizes) for record in raced)
        rows.append((sizes, *("-" if item is None else duration_text(item) for item in latencies), ratio))
    headers = ("sizes", *names, f"{names[raced.index(chosen)]} to the best other")
    return (Table(headers, tuple(rows), frozenset(range(1, len(headers)))),)
