"""Running a part of each parallel loop of native kernels, to estimate how long all of it takes."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from math import ceil, inf
from typing import Final

from intarsia.native.execution.driver import process_driver
from intarsia.native.execution.thread_pool import ThreadPool

_LOOP: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
"""Type of `parallel_for(runtime, body, closure, extent)`."""


class PartialLoops:
    """Runs the first iterations of each parallel loop, in place of all of them.

    The caches see what they see at the beginning of a whole run. Results are incomplete: kernels must not
    use computed values as addresses. One Python thread at a time may use an object.

    Attributes:
        parts: Divisor of the number of iterations of a loop; each thread has at least one iteration.
        ratio: Least ratio of all iterations to those that ran, over the loops since creation: the whole takes
            about so many times as long as the part, if parallel loops take all of the time; inf before.
    """

    def __init__(self, pool: ThreadPool, parts: int) -> None:
        """Create a runner on the threads of a pool.

        Args:
            pool: Thread pool that runs the loops.
            parts: Divisor of the number of iterations of a loop, at least 1.
        """
        self.parts = parts
        self.ratio = inf
        self._pool = pool
        driver = process_driver()
        self._run_loop = _LOOP(driver.parallel_for)
        self._callback = _LOOP(self._run_part)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        self._driver = replace(driver, parallel_for=address)

    def run(self, table: int, count: int, scratch_bytes: int = 0) -> None:
        """Run kernel calls like `ThreadPool.run`, but only a part of each parallel loop.

        Args:
            table: Address of an array of `CallRecord`.
            count: Number of calls.
            scratch_bytes: Scratch memory that the kernels need in each thread, in bytes.
        """
        runtime = self._pool.new_runtime(self._driver)
        runtime.reserve(scratch_bytes)
        self._driver.run_calls(table, count, runtime.address)

    def _run_part(self, runtime: int, body: int, closure: int, extent: int) -> None:
        part = min(extent, max(self._pool.threads, ceil(extent / self.parts)))
        if part:
            self.ratio = min(self.ratio, extent / part)
        self._run_loop(runtime, body, closure, part)
