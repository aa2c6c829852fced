"""A call in a process of its own, with a limit on its time."""

from __future__ import annotations

import math
import multiprocessing
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_CPU_SIGNAL: Final = signal.SIGXCPU
_WALL_FACTOR: Final = 10
"""Wall-clock limit over CPU limit: a call that sleeps has to end too, on a busy machine as on an idle one."""


@dataclass(frozen=True, slots=True)
class LimitedResult(Generic[T]):
    """The end of a call.

    Attributes:
        value: Its result; None without one.
        is_timed_out: Whether it reached its limit.
        exit_code: Exit code of a process that ended by itself without a result; negative for a signal.
    """

    value: T | None = None
    is_timed_out: bool = False
    exit_code: int = 0


def call_limited(function: Callable[[], T], seconds: float) -> LimitedResult[T]:
    """Call a function in a forked process, which sees what this process has registered.

    Args:
        function: Returns plain data; it handles its exceptions.
        seconds: Limit on the CPU time of the call in seconds; it also ends after ten times as much time.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(function, sender, math.ceil(seconds)), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds * _WALL_FACTOR):
            return LimitedResult(is_timed_out=True)
        value: T = receiver.recv()
        return LimitedResult(value)
    except EOFError:  # the process has ended without a result
        process.join()
        exit_code = process.exitcode or 0
        return LimitedResult(is_timed_out=exit_code == -_CPU_SIGNAL, exit_code=exit_code)
    finally:
        process.kill()
        process.join()
        receiver.close()


def _run(function: Callable[[], object], sender: Connection, seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    sender.send(function())
