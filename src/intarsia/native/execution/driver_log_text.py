"""The log of the parts of parallel loops, as LLVM IR: which thread ran which part when.

A table of calls starts and ends the log by calls like those of kernels, which exchange the function of its
runtime record for parallel loops. Tables without these calls run the same code as ever, so that the log costs
them nothing.

Comments stand in Python and not in the IR: the text is the driver's identity in artifacts.
"""

from __future__ import annotations

from typing import Final

LOG_HEADER_BYTES: Final = 24
"""Bytes of the header of a log: number of parts, most parts that it holds, number of the calling thread."""

LOG_RECORD_BYTES: Final = 24
"""Bytes of a part: number of its thread, start and end in nanoseconds."""

# `logged_body` stands for the body of a loop; its closure is the body, its closure and the log, on the stack
# of the caller, which waits until all parts are done. Parts take their records by an atomic increment. What
# does not fit is counted only.
LOOP_LOG_TEXT: Final = """
define internal void @logged_body(ptr %closure, i64 %begin, i64 %end, ptr %scratch) nounwind {
entry:
  %inner_at = getelementptr i8, ptr %closure, i64 8
  %log_at = getelementptr i8, ptr %closure, i64 16
  %body = load ptr, ptr %closure
  %inner = load ptr, ptr %inner_at
  %log = load ptr, ptr %log_at
  %start = call i64 @now()
  call void %body(ptr %inner, i64 %begin, i64 %end, ptr %scratch)
  %stop = call i64 @now()
  %number = atomicrmw add ptr %log, i64 1 monotonic
  %capacity_at = getelementptr i8, ptr %log, i64 8
  %capacity = load i64, ptr %capacity_at
  %fits = icmp ult i64 %number, %capacity
  br i1 %fits, label %write, label %leave
write:
  %thread = call i64 (i64, ...) @syscall(i64 ${gettid})
  %distance = mul i64 %number, ${log_record}
  %offset = add i64 %distance, ${log_header}
  %record = getelementptr i8, ptr %log, i64 %offset
  %start_at = getelementptr i8, ptr %record, i64 8
  %stop_at = getelementptr i8, ptr %record, i64 16
  store i64 %thread, ptr %record
  store i64 %start, ptr %start_at
  store i64 %stop, ptr %stop_at
  br label %leave
leave:
  ret void
}

define internal void @logged_parallel_for(ptr %runtime, ptr %body, ptr %closure, i64 %extent) nounwind {
  %log_at = at runtime.loop_log %runtime
  %log = load ptr, ptr %log_at
  %logged = alloca [3 x ptr], align 8
  %closure_at = getelementptr i8, ptr %logged, i64 8
  %logged_log_at = getelementptr i8, ptr %logged, i64 16
  store ptr %body, ptr %logged
  store ptr %closure, ptr %closure_at
  store ptr %log, ptr %logged_log_at
  call void @intarsia_parallel_for(ptr %runtime, ptr @logged_body, ptr %logged, i64 %extent)
  ret void
}

define void @intarsia_start_loop_log(ptr %arguments, ptr %runtime) nounwind {
  %log = load ptr, ptr %arguments
  %thread = call i64 (i64, ...) @syscall(i64 ${gettid})
  %thread_at = getelementptr i8, ptr %log, i64 16
  %log_at = at runtime.loop_log %runtime
  %loop_at = at runtime.parallel_for %runtime
  store i64 0, ptr %log
  store i64 %thread, ptr %thread_at
  store ptr %log, ptr %log_at
  store ptr @logged_parallel_for, ptr %loop_at
  ret void
}

define void @intarsia_end_loop_log(ptr %arguments, ptr %runtime) nounwind {
  %loop_at = at runtime.parallel_for %runtime
  store ptr @intarsia_parallel_for, ptr %loop_at
  ret void
}
"""
