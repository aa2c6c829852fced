"""The records that the compiled driver and Python share; the driver's text takes its offsets from here."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_int64, c_void_p
from typing import Any

_LINE = 64


class RuntimeRecord(ctypes.Structure):
    """What a kernel gets as its runtime; one per running region, never shared by two.

    The first three fields are the interface of kernels:
    parallel_for: `void (ptr runtime, ptr body, ptr closure, i64 extent)`.
    scratch: Memory of the calling thread, aligned to 64 bytes.
    scratch_bytes: How much of it each thread has.
    failed_check, failed_index: Which check of a bounds-checked kernel failed, from 1, and its index.
    The others are the driver's own: the pool (null: none), whether a parallel loop is running, and how far
    apart the scratch memories of the threads are.
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
    )


def _on_own_lines(*lines: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    """The fields with space between the groups, so that each begins a cache line."""
    fields: list[tuple[str, Any]] = []
    for number, line in enumerate(lines):
        used = sum(ctypes.sizeof(kind) for _, kind in line)
        fields += [*line, (f"space{number}", ctypes.c_char * (_LINE - used))]
    return tuple(fields)


class PoolRecord(ctypes.Structure):
    """The state of a pool's threads.

    ticket: The chunks that nobody has claimed: the first in the upper 32 bits, the end in the lower. The
        caller claims from the front and workers from the back: of two threads each keeps to its half.
    done: Chunks that workers have finished. is_joining: whether the caller sleeps until it changes.
    signal: Changes when sleeping workers should look again. sleepers: how many sleep. runs: regions
        that run now.
    is_closing: Whether workers end.
    body .. remainder: The loop: chunk i begins at i * quotient + min(i, remainder).
    is_busy: Whether a caller has the pool. most_chunks, and for how many nanoseconds workers spin while a
    region runs (worker_spin) and while none does (quiet_spin), and callers (join_spin): its settings.
    """

    _fields_ = _on_own_lines(
        (("ticket", c_int64),),
        (("done", c_int32), ("is_joining", c_int32)),
        (("signal", c_int32), ("sleepers", c_int32), ("runs", c_int32), ("is_closing", c_int32)),
        (
            ("body", c_void_p),
            ("closure", c_void_p),
            ("scratch", c_void_p),
            ("scratch_stride", c_int64),
            ("quotient", c_int64),
            ("remainder", c_int64),
        ),
        (("is_busy", c_int32), ("unused", c_int32), ("most_chunks", c_int64)),
        (("worker_spin", c_int64), ("quiet_spin", c_int64), ("join_spin", c_int64)),
    )


class WorkerRecord(ctypes.Structure):
    """What a worker thread gets: its pool, and its number from 1; 0 is the caller."""

    _fields_ = (("pool", c_void_p), ("lane", c_int64))


class CallRecord(ctypes.Structure):
    """A call in the table of a region: `kernel(arguments, runtime)`."""

    _fields_ = (("kernel", c_void_p), ("arguments", c_void_p))
