"""Determine the outcome of a job from its worker's reply and end."""

from __future__ import annotations

import pickle
import signal

from intarsia.measure.worker_pool.failure import (
    TaskFailedError,
    TaskOutOfMemoryError,
    TaskRaisedError,
    TaskTimedOutError,
    crashed,
    describe_end,
    ending_signal,
)
from intarsia.measure.worker_pool.messages import EXIT_CONNECTION_LOST, NoMemory, Raised, Returned
from intarsia.measure.worker_pool.process_tree import kernel_kills
from intarsia.measure.worker_pool.task import Job

_LOST = "the task closed, or wrote into, the connection of its process to the pool"


def read_reply(frame: bytes, job: Job) -> tuple[Returned | TaskFailedError, bool]:
    """Read the reply of a worker; return the outcome, and whether the worker is spoilt for other jobs."""
    try:
        reply = pickle.loads(frame)  # noqa: S301 -- our own code in the worker made it; values are bytes within
    except Exception:  # pickle raises anything on bytes that are not its own
        reply = None
    match reply:
        case Returned() if reply.number == job.number:
            return reply, reply.is_spoilt
        case Raised() if reply.number == job.number:
            line = reply.text.partition("\n")[0]
            failure = TaskRaisedError(
                f"the task raised {reply.type_name}" + (f": {line}" if line else ""),
                type_name=reply.type_name,
                text=reply.text,
                traceback=reply.traceback,
            )
            return failure, reply.is_spoilt
        case NoMemory() if reply.number == job.number:
            text = f" ({reply.text})" if reply.text else ""
            return TaskOutOfMemoryError(
                f"the task could not get the memory it requested{text}", limit_bytes=job.memory_bytes
            ), True
        case _:
            return crashed(_LOST), True


class Judge:
    """Determines why a job has no result; one for each slot."""

    def __init__(self) -> None:
        self._kernel_kills = kernel_kills()

    def overdue(self, job: Job, *, is_lost: bool) -> TaskFailedError:
        """The job has reached its time limit, or closed its connection and still runs."""
        if is_lost or job.timeout_s is None:
            return crashed(_LOST)
        return TaskTimedOutError(
            f"the task was ended at its limit of {job.timeout_s:g} s", limit_s=job.timeout_s
        )

    def too_large(self, job: Job, held: int) -> TaskFailedError:
        """The job holds more memory than it may."""
        limit = job.memory_bytes or 0
        return TaskOutOfMemoryError(
            f"the task was ended because it held {_mebibytes(held)}, "
            f"more than its limit of {_mebibytes(limit)}",
            limit_bytes=job.memory_bytes,
        )

    def ended(self, job: Job, status: int) -> TaskFailedError:
        """Its worker has ended by itself with a wait status."""
        before, self._kernel_kills = self._kernel_kills, kernel_kills()
        if ending_signal(status) == signal.SIGKILL and self._kernel_kills > before:
            return TaskOutOfMemoryError(
                "the system killed the task's process because memory ran out", limit_bytes=job.memory_bytes
            )
        if status == EXIT_CONNECTION_LOST << 8:
            return crashed(_LOST, status)
        return crashed(f"the task's process {describe_end(status)}", status)


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):.0f} MiB"
