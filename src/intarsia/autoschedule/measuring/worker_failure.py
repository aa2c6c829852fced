"""How a worker failed at a schedule."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.task_outcome import task_outcome


def worker_failure(future: Future[Any], timeout_kind: MeasureError) -> Outcome | None:
    """Wait for a task: why it has no result, or None if it has one.

    Args:
        future: The task.
        timeout_kind: BUILD_TIMEOUT or RUN_TIMEOUT, whichever a task over its time is.

    Raises:
        TaskStoppedError, CancelledError, PoolBrokenError: Nothing was learnt of the schedule.
        OutputError: Nothing can be written any more, which is not the schedule's fault.
    """
    if not future.cancelled() and future.exception() is None:
        return None
    return task_outcome(future, timeout_kind)
