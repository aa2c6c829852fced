"""The records that the compiled driver and Python share; they define the offsets in the driver's text."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_int64, c_void_p
from typing import Any

_LINE = 64  # bytes of a cache line
TICKET_BYTES = 2 * _LINE
"""Distance of the tickets of two lanes, in bytes: CPUs prefetch pairs of lines together."""


class RuntimeRecord(ctypes.Structure):
    """The runtime argument of kernels; each running region has a separate record.

    The first three fields are the interface of kernels:
    parallel_for: `void (ptr runtime, ptr body, ptr closure, i64 extent)`.
    scratch: Memory of the calling thread, aligned to 64 bytes.
    scratch_bytes: Size of the scratch memory of each thread, in bytes.
    failed_check, failed_index: Number of the failed check of a bounds-checked kernel, from 1, and its index.
    The driver alone uses the others: the pool (null: none), whether a parallel loop is running, and the
    distance
    between the scratch memories of the threads, in bytes.
    loop_log: Log of the parts of parallel loops (`LoopLog`), while `parallel_for` writes one.
    """

    _fields_ = (
        ("parallel_for", c_void_p),
        ("scratch", c_void_p),
        ("scratch_bytes", c_int64),
        ("pool", c_void_p),
        ("is_active", c_int64),
        ("scratch_stride", c_int64),
        ("failed_check", c_int64),
        ("failed_index", c_int64),
        ("loop_log", c_void_p),
    )


def _on_own_lines(*lines: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    """Return the fields, padded so that each group begins a cache line: groups have different writers."""
    fields: list[tuple[str, Any]] = []
    for number, line in enumerate(lines):
        used = sum(ctypes.sizeof(kind) for _, kind in line)
        fields += [*line, (f"space{number}", ctypes.c_char * (_LINE - used))]
    return tuple(fields)


class PoolRecord(ctypes.Structure):
    """The state of a pool's threads.

    The tickets of its lanes follow, each `TICKET_BYTES` behind the one before; lane 0 is the caller.

    loop: The last loop that began: its number, from 1, in the upper 48 bits, the number of its chunks in the
        lower 16.
    body .. chunks: The loop: chunk i of n begins at iteration i * extent / n, rounded up.
    done: Number of chunks that workers have finished. is_joining: whether the caller sleeps until it changes.
    signal: Counter that changes when sleeping workers must check again. sleepers: number of sleeping workers.
        runs: number of regions that run now.
    is_closing: Whether workers must end.
    is_busy: Whether a caller has the pool.
    most_chunks: Maximum number of chunks of a loop. lanes: number of threads.
    worker_spin, quiet_spin, join_spin: Spin times in nanoseconds of workers while a region runs, of workers
    while
        none runs, and of callers.
    """

    _fields_ = _on_own_lines(
        (
            ("loop", c_int64),
            ("body", c_void_p),
            ("closure", c_void_p),
            ("scratch", c_void_p),
            ("scratch_stride", c_int64),
            ("extent", c_int64),
            ("chunks", c_int64),
        ),
        (("done", c_int32), ("is_joining", c_int32)),
        (("signal", c_int32), ("sleepers", c_int32), ("runs", c_int32), ("is_closing", c_int32)),
        (("is_busy", c_int32), ("unused", c_int32)),
        (
            ("most_chunks", c_int64),
            ("lanes", c_int64),
            ("worker_spin", c_int64),
            ("quiet_spin", c_int64),
            ("join_spin", c_int64),
        ),
    )


class WorkerRecord(ctypes.Structure):
    """The argument of a worker thread: its pool, and its number from 1; 0 is the caller."""

    _fields_ = (("pool", c_void_p), ("lane", c_int64))


class CallRecord(ctypes.Structure):
    """An entry of a region's call table: `kernel(arguments, runtime)`."""

    _fields_ = (("kernel", c_void_p), ("arguments", c_void_p))
