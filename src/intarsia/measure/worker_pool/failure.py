"""How a task can fail; each is raised by `Future.result()` of that task alone.

TaskFailedError
├── TaskRaisedError         it raised an exception
├── WorkerCrashedError      its process ended: a signal, abort, exit
├── TaskTimedOutError       it was ended at its time limit
├── TaskOutOfMemoryError    it requested, or held, more memory than its limit
└── TaskStoppedError        the pool was stopped while it ran
PoolBrokenError             the pool itself cannot start workers
"""

from __future__ import annotations

import signal
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field

from intarsia.support.errors import IntarsiaError


@dataclass(eq=False)
class TaskFailedError(IntarsiaError):
    """A task that gave no result.

    Attributes:
        output: The end of what it wrote to its standard output and error, at most 8 KiB.
    """

    output: str = field(default="", kw_only=True)


@dataclass(eq=False)
class TaskRaisedError(TaskFailedError):
    """The task raised; the exception comes as text, because not every exception can be pickled.

    Attributes:
        type_name: Full name of the exception's class.
        text: Its message.
        traceback: The formatted traceback.
    """

    type_name: str = field(kw_only=True)
    text: str = field(kw_only=True)
    traceback: str = field(kw_only=True)


@dataclass(eq=False)
class WorkerCrashedError(TaskFailedError):
    """The process of the task ended before it had a result.

    Attributes:
        signal: Number of the signal that ended it, or None.
        exit_status: Exit status of the process, or None.
    """

    signal: int | None = field(default=None, kw_only=True)
    exit_status: int | None = field(default=None, kw_only=True)


@dataclass(eq=False)
class TaskTimedOutError(TaskFailedError):
    """The task ran for longer than it may.

    Attributes:
        limit_s: The limit in seconds.
    """

    limit_s: float = field(kw_only=True)


@dataclass(eq=False)
class TaskOutOfMemoryError(TaskFailedError):
    """The task needed more memory than it may have, or than there is.

    Attributes:
        limit_bytes: The limit, or None if it had none.
    """

    limit_bytes: int | None = field(kw_only=True)


@dataclass(eq=False)
class TaskStoppedError(TaskFailedError):
    """The pool was stopped while the task ran or waited; nothing is known of the task itself."""


@dataclass(eq=False)
class PoolBrokenError(IntarsiaError, BrokenExecutor):
    """No worker can be started, so no task can be run."""


def crashed(problem: str, status: int | None = None, output: str = "") -> WorkerCrashedError:
    """The failure of a worker that ended with a wait status, as `os.waitpid` gives it."""
    number = ending_signal(status)
    code = None if status is None or number is not None else status >> 8
    return WorkerCrashedError(problem, signal=number, exit_status=code, output=output)


def describe_end(status: int) -> str:
    """A wait status for people: "was killed by SIGSEGV" or "exited with code 3"."""
    number = ending_signal(status)
    if number is None:
        return f"exited with code {status >> 8}"
    try:
        return f"was killed by {signal.Signals(number).name}"
    except ValueError:  # real-time signals have no name
        return f"was killed by signal {number}"


def ending_signal(status: int | None) -> int | None:
    """The signal in a wait status, or None."""
    return status & 0x7F or None if status is not None else None
