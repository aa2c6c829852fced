"""Thread pools for native kernels: who runs a region, with how many threads and which memory."""

from __future__ import annotations

import ctypes
import threading
from typing import Final

from intarsia.native.execution.crew import Crew, Scratch
from intarsia.native.execution.driver import Driver, process_driver
from intarsia.native.execution.driver_records import RuntimeRecord
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.errors import UsageError
from intarsia.support.forks import reset_in_children

MOST_THREADS: Final = 4096


class Runtime:
    """What the kernels of one running region get; `address` is for them."""

    def __init__(self, driver: Driver, crew: Crew | None) -> None:
        self.crew = crew
        self.scratch_bytes = 0
        self._scratch: Scratch | None = None
        pool = 0 if crew is None else crew.address
        self._record = RuntimeRecord(driver.parallel_for, 0, 0, pool)
        self.address = ctypes.addressof(self._record)

    @property
    def failed_check(self) -> tuple[int, int]:
        """Number of the check that failed in a bounds-checked kernel, and the index; (0, 0) if none."""
        return int(self._record.failed_check), int(self._record.failed_index)

    def reserve(self, scratch_bytes: int) -> None:
        """Have at least so much scratch memory for each thread; only while nothing runs with this."""
        threads = 1 if self.crew is None else self.crew.threads
        self._scratch = Scratch(threads, scratch_bytes)
        self._record.scratch, self._record.scratch_stride = self._scratch.address, self._scratch.stride
        self._record.scratch_bytes = self.scratch_bytes = scratch_bytes


class ThreadPool(ClosedOnExit):
    """Threads for the parallel loops of native kernels; usable from several Python threads at once.

    The calling thread works too, so `threads - 1` workers are started, when the first region runs. While one
    caller has the workers, regions of others run on their own threads alone. With one thread there are no
    workers. A forked child begins with new workers.

    Args:
        threads: With the calling one.
        driver: What runs the regions; the process's own if not given.

    Raises:
        UsageError: The number of threads is not possible.
    """

    def __init__(self, threads: int, driver: Driver | None = None) -> None:
        self._threads = _checked(threads)
        self._driver = driver or process_driver()
        self._run_calls = self._driver.run_calls
        self._lock = threading.Lock()
        self._is_closed = False
        self._crew: Crew | None = None
        self._idle: list[Runtime] = []
        reset_in_children(self)

    @property
    def threads(self) -> int:
        """How many threads a region has, with the calling one."""
        return self._threads

    def run(self, table: int, count: int, scratch_bytes: int = 0) -> None:
        """Run calls one after another; Python's other threads run meanwhile.

        Args:
            table: Address of an array of `CallRecord`.
            count: How many.
            scratch_bytes: Scratch memory that their kernels need in each thread.

        Raises:
            UsageError: The pool is closed.
            ExecutionError: The workers do not start.
        """
        idle = self._idle  # a resized pool has another list: runtimes of before do not come back
        try:
            runtime = idle.pop()
        except IndexError:
            runtime = self._new_runtime()
        if runtime.scratch_bytes < scratch_bytes:
            runtime.reserve(scratch_bytes)
        if runtime.crew is not None:
            runtime.crew.make_room()
        self._run_calls(table, count, runtime.address)
        idle.append(runtime)

    def resize(self, threads: int) -> None:
        """Have another number of threads; regions that run now are finished with what they have.

        Raises:
            UsageError: The number of threads is not possible, or the pool is closed.
        """
        threads = _checked(threads)
        with self._lock:
            self._refuse_if_closed()
            if threads == self._threads:
                return
            self._threads = threads
            self._end_crew()

    def close(self) -> None:
        """End the workers and wait for them; regions that run now are finished by their callers."""
        with self._lock:
            self._is_closed = True
            self._end_crew()

    def _end_crew(self) -> None:
        crew, self._crew, self._idle = self._crew, None, []
        if crew is not None:
            crew.stop()

    def _new_runtime(self) -> Runtime:
        with self._lock:
            self._refuse_if_closed()
            if self._threads > 1 and self._crew is None:
                self._crew = Crew(self._threads, self._driver)
            return Runtime(self._driver, self._crew)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise UsageError("this thread pool is closed", help="make a new one")

    def reset_in_child(self) -> None:
        """Forget the workers, which the parent has kept, and locks that threads of the parent may hold."""
        self._lock = threading.Lock()
        self._crew, self._idle = None, []


def _checked(threads: int) -> int:
    if not 1 <= threads <= MOST_THREADS:
        raise UsageError(f"{threads} threads: a pool has from 1 to {MOST_THREADS}")
    return threads
