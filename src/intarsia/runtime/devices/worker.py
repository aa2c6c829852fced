"""The thread that does all work of a device, pinned to the device's cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from intarsia.runtime.devices.core_groups import CoreGroup

T = TypeVar("T")


class Worker:
    """A thread that runs submitted functions in order; it starts with the first one.

    Threads that its work starts (pools of engines) inherit its cores. A forked child begins with a new
    thread.

    Args:
        name: Shown by debuggers.
        cores: Cores for it and the threads that it starts; None for all.
    """

    def __init__(self, name: str, cores: CoreGroup | None = None) -> None:
        self._name, self._cores = name, cores
        self._process = os.getpid()
        self._executor = self._new_executor()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Submit a function; the future has its result or exception."""
        if os.getpid() != self._process:
            self._process, self._executor = os.getpid(), self._new_executor()
        return self._executor.submit(work)

    def call(self, work: Callable[[], T]) -> T:
        """Run a function in the thread and wait for its result."""
        return self.submit(work).result()

    def close(self) -> None:
        """Finish the submitted functions, and end the thread."""
        if os.getpid() == self._process:
            self._executor.shutdown()

    def _new_executor(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, f"intarsia-{self._name}", _pin, (self._cores,))


def _pin(cores: CoreGroup | None) -> None:
    """Pin this thread to some cores where the system allows it; that affects speed only."""
    set_affinity = getattr(os, "sched_setaffinity", None)  # Linux only
    if cores is not None and set_affinity is not None:
        with suppress(OSError):  # cores that have been taken away from this process meanwhile
            set_affinity(0, cores)
