"""The worker threads of a pool: started together, stopped together.

They are threads of the operating system that never touch Python: they need no lock of the interpreter to
begin or to end, and a kernel runs on them while Python code runs elsewhere.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from intarsia.native.execution.driver import Driver
from intarsia.native.execution.driver_records import PoolRecord, WorkerRecord
from intarsia.native.execution.process_cores import process_cores
from intarsia.support.aligned_memory import allocate_aligned
from intarsia.support.errors import ExecutionError

CHUNKS_PER_THREAD: Final = 4
"""Chunks of a parallel loop for each thread: what one may lose when the system gives it no time."""
THREAD_NAME: Final = "intarsia-work"
_WORKER_SPIN_NS: Final = 200_000
_QUIET_SPIN_NS: Final = 50_000
_JOIN_SPIN_NS: Final = 20_000
# These must reach Python's fault handler; all other signals are for threads that run Python.
_FAULTS: Final = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP"}


class Crew:
    """`threads - 1` workers and the record that they share with their callers.

    Args:
        threads: With the caller; at least 2.
        driver: What they run.

    Raises:
        ExecutionError: The system starts no more threads.
    """

    def __init__(self, threads: int, driver: Driver) -> None:
        self.threads = threads
        self._memory = allocate_aligned(ctypes.sizeof(PoolRecord))
        self._memory[:] = 0
        record = PoolRecord.from_buffer(self._memory.data)
        record.most_chunks = CHUNKS_PER_THREAD * threads
        record.worker_spin, record.quiet_spin = _WORKER_SPIN_NS, _QUIET_SPIN_NS
        record.join_spin = _JOIN_SPIN_NS
        self.address = ctypes.addressof(record)
        self._workers = (WorkerRecord * (threads - 1))()
        self._handles: list[int] = []
        self._lock = threading.Lock()
        self._cores = frozenset(os.sched_getaffinity(0))
        self._cores_of_process = process_cores()
        self._left_free = -1
        self._core_of_caller = _threads().sched_getcpu
        handles = self._handles
        owned = (self._memory, self._workers, driver)  # stays until the threads have ended
        self._stop = weakref.finalize(self, _stop, os.getpid(), record, handles, self._lock, owned)
        try:
            self._start(driver, handles)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the workers and wait for them; loops that still run are finished by their callers."""
        self._stop()

    def make_room(self) -> None:
        """Before a run: keep the workers off the core of their caller.

        The system wakes a thread near who wakes it, and two that share a core are parted by its next
        balancing only: 10 ms and more of one core's work for two.
        """
        here = self._core_of_caller()
        if here == self._left_free:
            return
        with self._lock:  # whoever stops the crew takes the handles before their threads are gone
            self._adopt_cores()
            if len(self._cores) < max(2, self.threads):
                return
            self._left_free = here
            others = _core_set(self._cores - {here})
            for handle in self._handles:
                _threads().pthread_setaffinity_np(handle, len(others), others)

    def _adopt_cores(self) -> None:
        """Use the cores that `taskset -ap` or the like has given to the process since they were last read."""
        cores = process_cores()
        if cores != self._cores_of_process:
            self._cores = self._cores_of_process = cores

    def _start(self, driver: Driver, handles: list[int]) -> None:
        with _signals_blocked():
            for lane, worker in enumerate(self._workers, 1):
                worker.pool, worker.lane = self.address, lane
                handle = ctypes.c_ulong()
                result = _threads().pthread_create(
                    ctypes.byref(handle), None, driver.worker, ctypes.addressof(worker)
                )
                if result:
                    raise ExecutionError(
                        f"worker thread {lane} of {self.threads - 1} does not start: {os.strerror(result)}",
                        help="use fewer threads, or raise the limit of threads (ulimit -u)",
                    )
                handles.append(handle.value)
                _threads().pthread_setname_np(handle.value, THREAD_NAME.encode())


def _stop(
    process: int, record: Any, handles: list[int], lock: threading.Lock, owned: tuple[Any, ...]
) -> None:
    """End the threads, unless this is a forked child, in which there are none."""
    if os.getpid() != process:
        return
    driver = owned[-1]
    driver.stop_workers(ctypes.addressof(record))
    with lock:
        ending = tuple(handles)
        handles.clear()
    for handle in ending:
        _threads().pthread_join(handle, None)
    record.sleepers = 0


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Threads inherit which signals they do not get."""
    faults = {number for number in signal.Signals if number.name in _FAULTS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - faults)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@functools.cache
def _threads() -> Any:
    """The functions of threads: in the C library, or in one of their own before glibc 2.34."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "pthread_create"):
        library = ctypes.CDLL("libpthread.so.0")
    pointer, word = ctypes.c_void_p, ctypes.c_ulong
    library.pthread_create.argtypes = (pointer, pointer, pointer, pointer)
    library.pthread_join.argtypes = (word, pointer)
    library.pthread_setname_np.argtypes = (word, ctypes.c_char_p)
    library.pthread_setaffinity_np.argtypes = (word, ctypes.c_size_t, ctypes.c_char_p)
    library.sched_getcpu.argtypes = ()
    return library


def _core_set(cores: Iterable[int]) -> bytes:
    """What the C library calls a cpu_set_t: a bit a core."""
    bits = sum(1 << core for core in cores)
    return bits.to_bytes(-(-max(bits.bit_length(), 1) // 64) * 8, sys.byteorder)


class Scratch:
    """Memory for one running region, a part for each thread; nothing is touched until a thread uses it."""

    def __init__(self, threads: int, size: int) -> None:
        self.stride = _stride(size)
        self._memory: np.ndarray[Any, np.dtype[np.uint8]] = allocate_aligned(self.stride * threads)
        self.address = int(self._memory.ctypes.data)


def _stride(size: int) -> int:
    """Whole cache lines, but not whole pages: parts that begin alike in their pages evict each other."""
    lines = -(-size // 64) * 64
    return lines + 64 if lines and lines % 4096 == 0 else lines
