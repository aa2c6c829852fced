"""What a line of a log says that a schedule costs."""

from __future__ import annotations

from math import inf

from intarsia.native.loop_state.record import Record


def record_cost(record: Record) -> float:
    """The mean of its costs in seconds; inf where it failed."""
    costs = record.result.costs
    return inf if record.result.error_no or not costs else sum(costs) / len(costs)
