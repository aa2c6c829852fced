"""The worker threads of a pool, which are started and stopped together.

They are threads of the operating system that never run Python code: they need no interpreter lock to start or
end, and run kernels while Python code runs in other threads.
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
from intarsia.native.execution.driver_records import TICKET_BYTES, PoolRecord, WorkerRecord
from intarsia.native.execution.process_cores import process_cores
from intarsia.support.aligned_memory import allocate_aligned
from intarsia.support.errors import ExecutionError

CHUNKS_PER_THREAD: Final = 4
"""Chunks of a parallel loop per thread. A thread that the system preempts delays one chunk only."""
THREAD_NAME: Final = "intarsia-work"
_WORKER_SPIN_NS: Final = 200_000
"""Time in nanoseconds that an idle worker spins while a region runs, before it sleeps."""
_QUIET_SPIN_NS: Final = 50_000
"""Time in nanoseconds that an idle worker spins while no region runs, before it sleeps."""
_JOIN_SPIN_NS: Final = 20_000
"""Time in nanoseconds that a caller spins for the last chunks of workers before it sleeps."""
# These signals must reach Python's fault handler; all others go to threads that run Python.
_FAULTS: Final = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP"}


class Crew:
    """`threads - 1` workers and the pool record that they share with their callers.

    Args:
        threads: Number of threads including the caller; at least 2.
        driver: Driver whose code the workers run.

    Raises:
        ExecutionError: The system refuses to start a thread.
    """

    def __init__(self, threads: int, driver: Driver) -> None:
        self.threads = threads
        self._memory = allocate_aligned(ctypes.sizeof(PoolRecord) + threads * TICKET_BYTES)
        self._memory[:] = 0
        record = PoolRecord.from_buffer(self._memory.data)
        record.most_chunks, record.lanes = CHUNKS_PER_THREAD * threads, threads
        record.worker_spin, record.quiet_spin = _WORKER_SPIN_NS, _QUIET_SPIN_NS
        record.join_spin = _JOIN_SPIN_NS
        self.address = ctypes.addressof(record)
        self._workers = (WorkerRecord * (threads - 1))()
        self._handles: list[int] = []
        self._lock = threading.Lock()
        self._cores = frozenset(os.sched_getaffinity(0))
        self._cores_of_process = process_cores()
        self._avoided_core = -1
        self._core_of_caller = _threads().sched_getcpu
        handles = self._handles
        owned = (self._memory, self._workers, driver)  # must outlive the threads
        self._stop = weakref.finalize(self, _stop, os.getpid(), record, handles, self._lock, owned)
        try:
            self._start(driver, handles)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the workers and wait for them; callers finish loops that still run."""
        self._stop()

    def avoid_caller_core(self) -> None:
        """Before a run: keep the workers off the core of their caller.

        The system wakes a thread near the core of the caller. Two threads on one core stay there until the
        next load balancing, which takes 10 ms or more.
        """
        caller_core = self._core_of_caller()
        if caller_core == self._avoided_core:
            return
        with self._lock:  # `_stop` clears the handles under this lock before it joins their threads
            self._adopt_cores()
            if len(self._cores) < max(2, self.threads):
                return
            self._avoided_core = caller_core
            others = _core_set(self._cores - {caller_core})
            for handle in self._handles:
                _threads().pthread_setaffinity_np(handle, len(others), others)

    def _adopt_cores(self) -> None:
        """Use the cores that `taskset -ap` or the like has assigned to the process since the last check."""
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
    """Stop the threads, unless this is a forked child, which has none."""
    if os.getpid() != process:
        return
    driver = owned[-1]
    driver.stop_workers(ctypes.addressof(record))
    with lock:
        joined = tuple(handles)
        handles.clear()
    for handle in joined:
        _threads().pthread_join(handle, None)
    # Workers that `is_closing` ends between announcing their sleep and sleeping do not take themselves off
    # again.
    record.sleepers = 0


def prepare_crews() -> None:
    """Do what is the same for all crews, which takes longer than to start one, before the first call."""
    _threads()
    _signals_of_python()


@functools.cache
def _signals_of_python() -> frozenset[int]:
    """Return the signals that threads without Python code must not get."""
    faults = {number for number in signal.Signals if number.name in _FAULTS}
    return frozenset(map(int, signal.valid_signals() - faults))


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals around the start of threads, which inherit the mask."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _signals_of_python())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@functools.cache
def _threads() -> Any:
    """Return the library with the thread functions: the C library, or libpthread before glibc 2.34."""
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
    """Return the C library's cpu_set_t of cores: one bit per core."""
    bits = sum(1 << core for core in cores)
    return bits.to_bytes(-(-max(bits.bit_length(), 1) // 64) * 8, sys.byteorder)


class Scratch:
    """Scratch memory of one running region, a part per thread.

    Pages are touched only when a thread uses them.
    """

    def __init__(self, threads: int, size: int) -> None:
        self.stride = _stride(size)
        self._memory: np.ndarray[Any, np.dtype[np.uint8]] = allocate_aligned(self.stride * threads)
        self.address = int(self._memory.ctypes.data)


def _stride(size: int) -> int:
    """Return the distance of two threads' scratch memory: whole cache lines, but not whole pages."""
    # Memory at equal offsets in pages of 4096 bytes competes for the same sets of the first-level cache.
    lines = -(-size // 64) * 64
    return lines + 64 if lines and lines % 4096 == 0 else lines
