"""Convert measurements to records of the v0.6 log, and back."""

from __future__ import annotations

import statistics
from math import inf
from typing import Final

from intarsia.autoschedule.measuring.error_numbers import error_number, error_of_number
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.measure_result import MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record, RecordResult

FAILED_SECONDS: Final = 1e10
"""Seconds that the log records for a failure; TVM writes the same."""


def record_of(task: SearchTask, state: LoopState, measured: MeasureResult) -> Record:
    """Return a measurement as a record; the message of a failure is not part of it."""
    costs = measured.costs if measured.is_ok else (FAILED_SECONDS,)
    number, at = error_number(measured.error), int(measured.timestamp)
    result = RecordResult(costs, number, measured.wall_seconds, at)
    return Record(task.record_task, state.transform_steps, result, is_confirmed=measured.is_confirmed)


def measurement_of(record: Record) -> MeasureResult:
    """Return the measurement of a record."""
    result = record.result
    error = error_of_number(result.error_no)
    costs = () if result.error_no else result.costs
    return MeasureResult(
        costs,
        error,
        wall_seconds=result.all_cost,
        timestamp=float(result.timestamp),
        is_confirmed=record.is_confirmed,
    )


def median_cost(*records: Record) -> float:
    """Return the median of the costs of all records that worked; inf if none did."""
    costs = [cost for record in records if not record.result.error_no for cost in record.result.costs]
    return statistics.median(costs) if costs else inf
