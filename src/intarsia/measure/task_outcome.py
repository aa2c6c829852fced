"""What a task of a pool gave, with the ways in which a worker can end as values."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from typing import Final, TypeVar

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.worker_pool import (
    PoolBrokenError,
    TaskFailedError,
    TaskOutOfMemoryError,
    TaskRaisedError,
    TaskStoppedError,
    TaskTimedOutError,
    WorkerCrashedError,
)
from intarsia.support.errors import OutputError

Result = TypeVar("Result")

_CRASH_REPORT: Final = "Fatal Python error: "


def task_outcome(future: Future[Result], timeout_kind: MeasureError) -> Result | Outcome:
    """Wait for a task, and return what it has returned, or how its worker has failed.

    Args:
        future: The task.
        timeout_kind: BUILD_TIMEOUT or RUN_TIMEOUT, whichever a task over its time is.

    Raises:
        TaskStoppedError, CancelledError, PoolBrokenError: Nothing was learnt of the candidate.
        OutputError: Nothing can be written any more, which is not the candidate's fault.
    """
    try:
        return future.result()
    except (TaskStoppedError, CancelledError, PoolBrokenError):
        raise
    except TaskRaisedError as error:
        if error.type_name.rpartition(".")[2] == OutputError.__name__:
            raise OutputError(error.text) from error
        return _outcome(MeasureError.UNKNOWN, error)
    except TaskTimedOutError as error:
        return _outcome(timeout_kind, error)
    except TaskOutOfMemoryError as error:
        return _outcome(MeasureError.OUT_OF_MEMORY, error)
    except WorkerCrashedError as error:
        return _outcome(MeasureError.CRASH, error)
    except TaskFailedError as error:
        return _outcome(MeasureError.UNKNOWN, error)


def _outcome(kind: MeasureError, error: TaskFailedError) -> Outcome:
    """The last line that the task printed often says why it ended, unlike Python's report of a crash."""
    printed = error.output.partition(_CRASH_REPORT)[0].strip().splitlines()
    return Outcome(kind, error.problem + (f" (it printed: {printed[-1][-200:]})" if printed else ""))
