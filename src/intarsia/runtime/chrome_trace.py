"""Traces in Chrome's trace event format, which Perfetto and chrome://tracing show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TraceSlice:
    """A stretch of time in a row of a trace; slices that lie within another one are shown below it.

    Attributes:
        name: Name of what runs.
        category: Category, by which viewers filter.
        row: Name of the row.
        start: Start in nanoseconds.
        end: End in nanoseconds.
        details: Values that are shown when the slice is selected.
    """

    name: str
    category: str
    row: str
    start: int
    end: int
    details: Mapping[str, object] = field(default_factory=dict)


def chrome_trace(slices: Sequence[TraceSlice]) -> str:
    """Return slices as JSON of Chrome's trace event format; times in microseconds from the first start."""
    rows = {name: row for row, name in enumerate(sorted({item.row for item in slices}))}
    names = [
        {"name": "thread_name", "ph": "M", "pid": 0, "tid": row, "args": {"name": name}}
        for name, row in rows.items()
    ]
    first = min((item.start for item in slices), default=0)
    events = [
        {
            "name": item.name,
            "cat": item.category,
            "ph": "X",
            "pid": 0,
            "tid": rows[item.row],
            "ts": (item.start - first) / 1000,
            "dur": (item.end - item.start) / 1000,
            "args": dict(item.details),
        }
        for item in slices
    ]
    return json.dumps({"traceEvents": [*names, *events], "displayTimeUnit": "ns"})
