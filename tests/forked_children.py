"""Calls in forked children, while threads of the parent call too."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE_S: Final = 30.0
"""Seconds after which a child is taken to hang."""


def forked(is_right: Callable[[], bool]) -> int | None:
    """Call in a forked child; returns its exit status, 0 if it is right, or None if it hangs."""
    process = os.fork()
    if process == 0:
        try:
            os._exit(0 if is_right() else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


@contextmanager
def threads_that_call(function: Callable[[], object]) -> Iterator[None]:
    """Two threads that call a function as long as the block takes."""
    is_over = threading.Event()

    def call_until_over() -> None:
        while not is_over.is_set():
            function()

    callers = [threading.Thread(target=call_until_over, daemon=True) for _ in range(2)]
    for caller in callers:
        caller.start()
    try:
        yield
    finally:
        is_over.set()
        for caller in callers:
            caller.join()
