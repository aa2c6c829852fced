"""The cost of a schedule in a record of a log."""

from __future__ import annotations

from math import inf

from intarsia.native.loop_state.record import Record


def record_cost(record: Record) -> float:
    """Return the mean of the record's costs in seconds; inf for a failure."""
    costs = record.result.costs
    return inf if record.result.error_no or not costs else sum(costs) / len(costs)
