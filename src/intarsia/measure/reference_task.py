"""Compute the reference result of a workload in a worker, since judges are foreign code, too.

A judge that crashes ends its worker, and so does one that takes too long, by an alarm of the system. The
worker
has noted which judge runs, so that the reference result is computed again without it.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from intarsia.measure.worker_pool import (
    TaskFailedError,
    TaskStoppedError,
    WorkerCrashedError,
    WorkerPool,
)
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.errors import ExecutionError, IntarsiaError

JUDGE_SECONDS: Final = 120.0
"""Time that one run of a judge may take, with compiling, where no other limit is given."""

_AT_WORK: Final = "judge at work.txt"


@dataclass(frozen=True, slots=True)
class _Watch:
    """Notes the judge at work in a file, and ends this process if its run takes too long.

    Attributes:
        path: The file.
        seconds: Time that one run may take.
    """

    path: Path
    seconds: float

    def __call__(self, judge: str) -> None:
        self.path.write_text(judge)
        # An engine that hangs may hold the interpreter's lock: only the system itself can interrupt it.
        signal.setitimer(signal.ITIMER_REAL, self.seconds if judge else 0)


def compute_reference(
    path: Path, left_out: Sequence[tuple[str, str]] = (), seconds: float = JUDGE_SECONDS
) -> IntarsiaError | None:
    """Add the reference result to a workload's folder; return the error if that fails.

    Args:
        path: The folder.
        left_out: Names of judges that are not called, each with the reason.
        seconds: Time that one run of a judge may take; a longer one ends this process.
    """
    note = path / _AT_WORK
    try:
        WorkloadFolder(path).add_reference(left_out, _Watch(note, seconds))
    except IntarsiaError as error:
        return error
    finally:
        note.unlink(missing_ok=True)
    return None


def add_reference(pool: WorkerPool, path: Path, seconds: float = JUDGE_SECONDS) -> None:
    """Have a worker add the reference result to a workload's folder.

    A judge that crashes or takes too long is left out, with a note in the report.

    Args:
        pool: Pool with a worker.
        path: The folder.
        seconds: Time that one run of a judge may take, with compiling.

    Raises:
        IntarsiaError: Not even the reference computes the program.
    """
    left_out: list[tuple[str, str]] = []
    while True:
        try:
            problem = pool.submit(compute_reference, path, tuple(left_out), seconds).result()
            break
        except IntarsiaError as error:  # of the worker: it crashed, or was stopped
            judge = _judge_at_work(path)
            is_judge = isinstance(error, TaskFailedError) and not isinstance(error, TaskStoppedError)
            if not is_judge or not judge or judge in dict(left_out):
                raise ExecutionError(f"the reference result cannot be computed: {error.problem}") from error
            left_out.append((judge, _reason(error, seconds)))
    if problem is not None:
        raise problem


def _judge_at_work(path: Path) -> str:
    """Return the name of the judge that ended a worker; "" if none did."""
    with suppress(OSError):
        return (path / _AT_WORK).read_text()
    return ""


def _reason(error: IntarsiaError, seconds: float) -> str:
    if isinstance(error, WorkerCrashedError) and error.signal == signal.SIGALRM:
        return f"it took more than {seconds:g} s"
    return error.problem.replace("the task's process", "its process")
