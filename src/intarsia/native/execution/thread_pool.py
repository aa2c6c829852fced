"""Thread pools for native kernels: the threads and the scratch memory of running regions."""

from __future__ import annotations

import ctypes
import threading
from typing import Final

from intarsia.native.execution.crew import Crew, Scratch, prepare_crews
from intarsia.native.execution.driver import Driver, process_driver
from intarsia.native.execution.driver_records import RuntimeRecord
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.errors import UsageError
from intarsia.support.forks import reset_in_children

MOST_THREADS: Final = 4096


class Runtime:
    """Runtime record of one running region; kernels get its `address`."""

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
        """Allocate scratch memory of this size for each thread.

        No region may run with this runtime meanwhile.
        """
        threads = 1 if self.crew is None else self.crew.threads
        self._scratch = Scratch(threads, scratch_bytes)
        self._record.scratch, self._record.scratch_stride = self._scratch.address, self._scratch.stride
        self._record.scratch_bytes = self.scratch_bytes = scratch_bytes


class ThreadPool(ClosedOnExit):
    """Threads for the parallel loops of native kernels; usable from several Python threads at once.

    The calling thread works too, so the first region starts `threads - 1` workers. While one caller has the
    workers, regions of other callers run on the calling threads alone. With one thread there are no workers.
    A forked child starts new workers.

    Args:
        threads: Number of threads including the calling one.
        driver: Driver that runs the regions; that of the process if not given.

    Raises:
        UsageError: The number of threads is not possible.
    """

    def __init__(self, threads: int, driver: Driver | None = None) -> None:
        self._threads = _checked(threads)
        self._driver = driver or process_driver()
        self._run_calls = self._driver.run_calls
        if threads > 1:
            prepare_crews()
        self._lock = threading.Lock()
        self._is_closed = False
        self._crew: Crew | None = None
        self._idle: list[Runtime] = []
        reset_in_children(self)

    @property
    def threads(self) -> int:
        """Number of threads of a region including the calling one."""
        return self._threads

    def run(self, table: int, count: int, scratch_bytes: int = 0) -> None:
        """Run kernel calls one after another, without the interpreter lock.

        Args:
            table: Address of an array of `CallRecord`.
            count: Number of calls.
            scratch_bytes: Scratch memory that the kernels need in each thread, in bytes.

        Raises:
            UsageError: The pool is closed.
            ExecutionError: The workers do not start.
        """
        idle = (
            self._idle
        )  # a resize replaces the list, so runtimes of the old crew never return to the new one
        try:
            runtime = idle.pop()
        except IndexError:
            runtime = self.new_runtime()
        if runtime.scratch_bytes < scratch_bytes:
            runtime.reserve(scratch_bytes)
        if runtime.crew is not None:
            runtime.crew.avoid_caller_core()
        self._run_calls(table, count, runtime.address)
        idle.append(runtime)

    def resize(self, threads: int) -> None:
        """Change the number of threads; regions that run now keep theirs.

        Raises:
            UsageError: The number of threads is not possible, or the pool is closed.
        """
        threads = _checked(threads)
        with self._lock:
            self._refuse_if_closed()
            if threads == self._threads:
                return
            self._threads = threads
            self._stop_crew()

    def close(self) -> None:
        """Stop the workers and wait for them; callers finish the regions that run now."""
        with self._lock:
            self._is_closed = True
            self._stop_crew()

    def _stop_crew(self) -> None:
        crew, self._crew, self._idle = self._crew, None, []
        if crew is not None:
            crew.stop()

    def new_runtime(self, driver: Driver | None = None) -> Runtime:
        """Return a runtime record for a region on the threads of this pool.

        Args:
            driver: Driver that the region calls; that of the pool if not given.
        """
        with self._lock:
            self._refuse_if_closed()
            if self._threads > 1 and self._crew is None:
                self._crew = Crew(self._threads, self._driver)
            return Runtime(driver or self._driver, self._crew)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise UsageError("this thread pool is closed", help="make a new one")

    def reset_in_child(self) -> None:
        """Forget the workers, which only the parent has, and locks that threads of the parent may hold."""
        self._lock = threading.Lock()
        self._crew, self._idle = None, []


def _checked(threads: int) -> int:
    if not 1 <= threads <= MOST_THREADS:
        raise UsageError(f"{threads} threads: a pool has from 1 to {MOST_THREADS}")
    return threads
