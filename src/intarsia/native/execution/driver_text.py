"""The driver as LLVM IR: it runs tables of kernels, and the thread pool of their parallel loops.

A parallel loop is cut into chunks, of which each thread has a range: the same part of every loop of as many
iterations, so that it reads in its cache what it wrote. A thread takes the chunks of its range by
compare-and-swap on its ticket, a word in a cache line of its own, and then chunks of others from the far end.
The caller drains all ranges and then waits only for the chunks that workers have claimed, so a worker that
the system does not schedule costs nothing. The fields of a loop are written before its number and read after
a claim. No loop begins before all claimed chunks of the previous loop are finished, so a claim is always for
the present loop.

Workers spin for a bounded time between the loops of one region, and for a shorter time after a region, since
the next one often follows at once; otherwise they sleep (futex). A worker that goes to sleep announces
itself, then reads the number of the loop once more; the caller writes that number, then reads how many sleep.
Both orders are sequentially consistent, so at least one of them sees the other.

A nested parallel loop, and a loop of a second caller while a first has the pool, run serially. The nested
loop gets separate scratch memory, because the outer loop uses that of the thread.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from string import Template
from typing import Final

from intarsia.native.execution.driver_log_text import LOG_HEADER_BYTES, LOG_RECORD_BYTES, LOOP_LOG_TEXT
from intarsia.native.execution.driver_loop_text import CLAIM_TEXT, JOIN_TEXT, PARALLEL_FOR_TEXT
from intarsia.native.execution.driver_records import (
    TICKET_BYTES,
    CallRecord,
    PoolRecord,
    RuntimeRecord,
    WorkerRecord,
)
from intarsia.native.execution.driver_worker_text import WORKER_TEXT
from intarsia.support.digest import DIGEST_BYTES, digest_text

RUN_CALLS: Final = "intarsia_run_calls"
PARALLEL_FOR: Final = "intarsia_parallel_for"
WORKER: Final = "intarsia_worker"
STOP_WORKERS: Final = "intarsia_stop_workers"
TIMESTAMP: Final = "intarsia_timestamp"
START_LOOP_LOG: Final = "intarsia_start_loop_log"
END_LOOP_LOG: Final = "intarsia_end_loop_log"
IDENTITY: Final = "intarsia_driver_identity"
IDENTITY_BYTES: Final = 2 * DIGEST_BYTES


@dataclass(frozen=True)
class _Machine:
    """Differences between architectures: the pause instruction, the numbers of system calls."""

    pause: str
    declare_pause: str
    futex: int
    gettid: int


_MACHINES: Final = {
    "x86_64": _Machine("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()", 202, 186),
    "aarch64": _Machine(
        "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32 immarg)", 98, 178
    ),
}
# Records by the names that the `at` lines of the templates use.
_RECORDS: Final = {
    "pool": PoolRecord,
    "runtime": RuntimeRecord,
    "worker": WorkerRecord,
    "call": CallRecord,
}
_FIELD: Final = re.compile(r"^( *)(%\w+) = at (\w+)\.(\w+) (%\w+)$", re.MULTILINE)

# Clock 1 is CLOCK_MONOTONIC. Futex operations: 128 is FUTEX_WAIT_PRIVATE, 129 is FUTEX_WAKE_PRIVATE.
_LINKAGE: Final = """
${declare_pause}
declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare void @abort()
declare i64 @llvm.umin.i64(i64, i64)

define internal i64 @now() nounwind {
  %time = alloca [2 x i64], align 8
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest_at = getelementptr i8, ptr %time, i64 8
  %rest = load i64, ptr %rest_at
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %rest
  ret i64 %sum
}

define internal void @wait_while_equal(ptr %word, i32 %value) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 ${futex}, ptr %word, i32 128, i32 %value, ptr null, ptr null, i32 0)
  ret void
}

define internal void @wake(ptr %word, i32 %count) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 ${futex}, ptr %word, i32 129, i32 %count, ptr null, ptr null, i32 0)
  ret void
}
"""

# `runs` is above 0 while a region runs, so that idle workers spin longer between its loops.
_RUN_CALLS: Final = """
define void @intarsia_run_calls(ptr %table, i64 %count, ptr %runtime) nounwind {
entry:
  %pool_at = at runtime.pool %runtime
  %pool = load ptr, ptr %pool_at
  %is_alone = icmp eq ptr %pool, null
  br i1 %is_alone, label %next, label %enter
enter:
  %enter_runs = at pool.runs %pool
  %ignored = atomicrmw add ptr %enter_runs, i32 1 seq_cst
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ 0, %enter ], [ %i_next, %call ]
  %is_left = icmp slt i64 %i, %count
  br i1 %is_left, label %call, label %end
call:
  %offset = mul i64 %i, ${call_bytes}
  %record = getelementptr i8, ptr %table, i64 %offset
  %kernel_at = at call.kernel %record
  %arguments_at = at call.arguments %record
  %kernel = load ptr, ptr %kernel_at
  %arguments = load ptr, ptr %arguments_at
  call void %kernel(ptr %arguments, ptr %runtime)
  %i_next = add i64 %i, 1
  br label %next
end:
  br i1 %is_alone, label %leave, label %quit
quit:
  %quit_runs = at pool.runs %pool
  %more_ignored = atomicrmw sub ptr %quit_runs, i32 1 seq_cst
  br label %leave
leave:
  ret void
}
"""

# A kernel like any other: profiles put calls of it between those of a table, whose own code stays as it is.
_TIMESTAMP: Final = """
define void @intarsia_timestamp(ptr %arguments, ptr %runtime) nounwind {
  %stamp_at = load ptr, ptr %arguments
  %time = call i64 @now()
  store i64 %time, ptr %stamp_at
  ret void
}
"""


def driver_text(architecture: str) -> str:
    """Return the driver's LLVM module for an architecture ("x86_64" or "aarch64").

    It uses no vector instructions, and contains a digest of itself under the name IDENTITY.
    """
    machine = _MACHINES[architecture]
    parts = (
        _LINKAGE,
        CLAIM_TEXT,
        JOIN_TEXT,
        PARALLEL_FOR_TEXT,
        WORKER_TEXT,
        _RUN_CALLS,
        _TIMESTAMP,
        LOOP_LOG_TEXT,
    )
    text = Template("".join(parts)).substitute(
        pause=machine.pause,
        declare_pause=machine.declare_pause,
        futex=machine.futex,
        gettid=machine.gettid,
        log_header=LOG_HEADER_BYTES,
        log_record=LOG_RECORD_BYTES,
        call_bytes=ctypes.sizeof(CallRecord),
        ticket_bytes=TICKET_BYTES,
        tickets=ctypes.sizeof(PoolRecord),
    )
    text = _FIELD.sub(_address_of_field, text)
    identity = digest_text([text])
    return f'{text}\n@{IDENTITY} = constant [{len(identity)} x i8] c"{identity}"\n'


def driver_identity(architecture: str) -> bytes:
    """Return the digest that object code of `driver_text` contains under the name IDENTITY."""
    return driver_text(architecture)[-IDENTITY_BYTES - 2 : -2].encode()


def _address_of_field(match: re.Match[str]) -> str:
    """Expand `%x = at record.field %p` to a getelementptr."""
    indent, name, record, field, pointer = match.groups()
    offset = getattr(_RECORDS[record], field).offset
    return f"{indent}{name} = getelementptr i8, ptr {pointer}, i64 {offset}"
