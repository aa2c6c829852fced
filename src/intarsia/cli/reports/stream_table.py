"""Table of programs in pools under load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from intarsia.cli.reports.table import Table
from intarsia.support.units import NOTHING, duration_text

if TYPE_CHECKING:
    from intarsia.driver.stream_search.stream_record import StreamRecord

HEADERS: Final = (
    "program",
    "streams",
    "threads",
    "batch",
    "requests/s",
    *("p50", "p95", "p99"),
    "chosen",
)
NUMERIC: Final = frozenset(range(1, 8))


def stream_tables(records: Sequence[StreamRecord]) -> tuple[Table, ...]:
    """Return a table with a row for each program and choice that ran; none if there was no load."""
    rows = tuple(_row(record) for record in records if not record.reason)
    return (Table(HEADERS, rows, NUMERIC, chosen=0),) if rows else ()


def stream_lines(records: Sequence[StreamRecord]) -> list[str]:
    """Return a line for each reason for which a program cannot run with some choices."""
    reasons = dict.fromkeys((record.name, record.reason) for record in records if record.reason)
    return [f"{name}: {reason}" for name, reason in reasons]


def _row(record: StreamRecord) -> tuple[str, ...]:
    choice, load = record.choice, record.load
    tail = (load.p50, load.p95, load.p99) if load else None
    latencies = (NOTHING,) * 3 if tail is None else tuple(duration_text(value) for value in tail)
    numbers = str(choice.streams), str(choice.threads), str(choice.batch), f"{record.rate:.0f}"
    return (record.name, *numbers, *latencies, "yes" if record.chosen else "")
