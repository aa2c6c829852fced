"""The caller's side of parallel loops, as LLVM IR; `driver_text` describes the protocol.

Comments stand in Python and not in the IR: the text is the driver's identity in artifacts.
"""

from __future__ import annotations

from typing import Final

# `claim` returns the number of a chunk that now belongs to the calling thread, or -1. Begin and end of the
# free chunks share one word, so that one compare-and-swap takes a chunk from the front or the back; a failed
# one returns the present value, with which the loop tries again. If the same value meanwhile belongs to
# another loop (ABA), the claim is for that loop, which is harmless, since `run_chunk` reads the fields of the
# loop after the claim: with plain loads, which the compare-and-swap orders. The first `remainder` chunks have
# one iteration more, so chunk sizes differ by one at most.
CLAIM_TEXT: Final = """
define internal i64 @claim(ptr %pool, i1 %is_front) nounwind {
entry:
  %ticket = at pool.ticket %pool
  %first = load atomic i64, ptr %ticket seq_cst, align 8
  br label %look
look:
  %seen = phi i64 [ %first, %entry ], [ %found, %try ]
  %begin = lshr i64 %seen, 32
  %end = and i64 %seen, 4294967295
  %any = icmp ult i64 %begin, %end
  br i1 %any, label %try, label %none
try:
  %without_front = add i64 %seen, 4294967296
  %without_back = sub i64 %seen, 1
  %next = select i1 %is_front, i64 %without_front, i64 %without_back
  %pair = cmpxchg ptr %ticket, i64 %seen, i64 %next seq_cst seq_cst
  %found = extractvalue { i64, i1 } %pair, 0
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %claimed, label %look
claimed:
  %last = sub i64 %end, 1
  %chunk = select i1 %is_front, i64 %begin, i64 %last
  ret i64 %chunk
none:
  ret i64 -1
}

define internal void @run_chunk(ptr %pool, i64 %chunk, i64 %lane) nounwind {
  %body_at = at pool.body %pool
  %closure_at = at pool.closure %pool
  %scratch_at = at pool.scratch %pool
  %stride_at = at pool.scratch_stride %pool
  %quotient_at = at pool.quotient %pool
  %remainder_at = at pool.remainder %pool
  %body = load ptr, ptr %body_at
  %closure = load ptr, ptr %closure_at
  %scratch = load ptr, ptr %scratch_at
  %stride = load i64, ptr %stride_at
  %quotient = load i64, ptr %quotient_at
  %remainder = load i64, ptr %remainder_at
  %whole = mul i64 %chunk, %quotient
  %before = call i64 @llvm.umin.i64(i64 %chunk, i64 %remainder)
  %begin = add i64 %whole, %before
  %is_longer = icmp ult i64 %chunk, %remainder
  %one = zext i1 %is_longer to i64
  %size = add i64 %quotient, %one
  %end = add i64 %begin, %size
  %offset = mul i64 %lane, %stride
  %own_scratch = getelementptr i8, ptr %scratch, i64 %offset
  call void %body(ptr %closure, i64 %begin, i64 %end, ptr %own_scratch)
  ret void
}
"""

# `join` waits until workers have finished `awaited` chunks: it spins first, then sleeps. It reads the clock
# only every 32 turns, because a read costs as much as many pauses. `is_joining` is set before `done` is read
# again and workers raise `done` before they read `is_joining`, both sequentially consistent: either the
# caller sees the last chunk done or its worker sees the caller asleep and wakes it. A wake that comes too
# early is harmless, since the futex compares `done` with the value seen.
JOIN_TEXT: Final = """
define internal void @join(ptr %pool, i32 %awaited) nounwind {
entry:
  %done_at = at pool.done %pool
  %joining_at = at pool.is_joining %pool
  %limit_at = at pool.join_spin %pool
  br label %look
look:
  %turn = phi i64 [ 0, %entry ], [ %turn_next, %rest ], [ %turn_next, %clock ]
  %start = phi i64 [ 0, %entry ], [ %start, %rest ], [ %start_next, %clock ]
  %done = load atomic i32, ptr %done_at seq_cst, align 4
  %is_over = icmp eq i32 %done, %awaited
  br i1 %is_over, label %leave, label %rest
rest:
  ${pause}
  %turn_next = add i64 %turn, 1
  %low = and i64 %turn_next, 31
  %is_time = icmp eq i64 %low, 0
  br i1 %is_time, label %clock, label %look
clock:
  %now = call i64 @now()
  %is_first = icmp eq i64 %turn_next, 32
  %start_next = select i1 %is_first, i64 %now, i64 %start
  %spent = sub i64 %now, %start_next
  %limit = load i64, ptr %limit_at
  %is_late = icmp ugt i64 %spent, %limit
  br i1 %is_late, label %announce, label %look
announce:
  store atomic i32 1, ptr %joining_at seq_cst, align 4
  br label %sleep
sleep:
  %seen = load atomic i32, ptr %done_at seq_cst, align 4
  %is_done = icmp eq i32 %seen, %awaited
  br i1 %is_done, label %awake, label %wait
wait:
  call void @wait_while_equal(ptr %done_at, i32 %seen)
  br label %sleep
awake:
  store atomic i32 0, ptr %joining_at seq_cst, align 4
  br label %leave
leave:
  ret void
}
"""

# `intarsia_parallel_for` runs the loop alone if it is small, nested, or if another caller has the pool
# (is_busy, taken by compare-and-swap, never waited for). The fields of the loop and `done` are stored before
# the ticket, whose sequentially consistent store publishes them. Sleepers are counted after that store; see
# `driver_text`. It wakes chunks - 1 workers at most, since the caller works too. It waits only for the chunks
# that workers have claimed: `own` counts those of the caller.
PARALLEL_FOR_TEXT: Final = """
define void @intarsia_parallel_for(ptr %runtime, ptr %body, ptr %closure, i64 %extent) nounwind {
entry:
  %active_at = at runtime.is_active %runtime
  %pool_at = at runtime.pool %runtime
  %scratch_at = at runtime.scratch %runtime
  %bytes_at = at runtime.scratch_bytes %runtime
  %stride_at = at runtime.scratch_stride %runtime
  %any = icmp sgt i64 %extent, 0
  br i1 %any, label %look, label %leave
look:
  %active = load i64, ptr %active_at
  %is_outer = icmp eq i64 %active, 0
  br i1 %is_outer, label %outer, label %nested
outer:
  store i64 1, ptr %active_at
  %scratch = load ptr, ptr %scratch_at
  %pool = load ptr, ptr %pool_at
  %is_alone = icmp eq ptr %pool, null
  br i1 %is_alone, label %serial, label %pooled
pooled:
  %most_at = at pool.most_chunks %pool
  %most = load i64, ptr %most_at
  %chunks = call i64 @llvm.umin.i64(i64 %extent, i64 %most)
  %is_small = icmp ult i64 %chunks, 2
  br i1 %is_small, label %serial, label %take
take:
  %busy_at = at pool.is_busy %pool
  %pair = cmpxchg ptr %busy_at, i32 0, i32 1 seq_cst seq_cst
  %is_mine = extractvalue { i32, i1 } %pair, 1
  br i1 %is_mine, label %publish, label %serial
serial:
  call void %body(ptr %closure, i64 0, i64 %extent, ptr %scratch)
  store i64 0, ptr %active_at
  br label %leave
publish:
  %stride = load i64, ptr %stride_at
  %quotient = udiv i64 %extent, %chunks
  %remainder = urem i64 %extent, %chunks
  %p_body = at pool.body %pool
  %p_closure = at pool.closure %pool
  %p_scratch = at pool.scratch %pool
  %p_stride = at pool.scratch_stride %pool
  %p_quotient = at pool.quotient %pool
  %p_remainder = at pool.remainder %pool
  store ptr %body, ptr %p_body
  store ptr %closure, ptr %p_closure
  store ptr %scratch, ptr %p_scratch
  store i64 %stride, ptr %p_stride
  store i64 %quotient, ptr %p_quotient
  store i64 %remainder, ptr %p_remainder
  %done_at = at pool.done %pool
  store atomic i32 0, ptr %done_at monotonic, align 4
  %ticket = at pool.ticket %pool
  store atomic i64 %chunks, ptr %ticket seq_cst, align 8
  %sleepers_at = at pool.sleepers %pool
  %sleepers = load atomic i32, ptr %sleepers_at seq_cst, align 4
  %any_sleeper = icmp sgt i32 %sleepers, 0
  br i1 %any_sleeper, label %wake, label %drain
wake:
  %signal_at = at pool.signal %pool
  %ignored = atomicrmw add ptr %signal_at, i32 1 seq_cst
  %others = trunc i64 %chunks to i32
  %useful = sub i32 %others, 1
  call void @wake(ptr %signal_at, i32 %useful)
  br label %drain
drain:
  %own = phi i64 [ 0, %publish ], [ 0, %wake ], [ %own_next, %run ]
  %chunk = call i64 @claim(ptr %pool, i1 true)
  %is_empty = icmp slt i64 %chunk, 0
  br i1 %is_empty, label %join, label %run
run:
  call void @run_chunk(ptr %pool, i64 %chunk, i64 0)
  %own_next = add i64 %own, 1
  br label %drain
join:
  %claimed = sub i64 %chunks, %own
  %awaited = trunc i64 %claimed to i32
  call void @join(ptr %pool, i32 %awaited)
  store atomic i32 0, ptr %busy_at seq_cst, align 4
  store i64 0, ptr %active_at
  br label %leave
nested:
  %bytes = load i64, ptr %bytes_at
  %needs_scratch = icmp sgt i64 %bytes, 0
  br i1 %needs_scratch, label %allocate, label %without
without:
  call void %body(ptr %closure, i64 0, i64 %extent, ptr null)
  br label %leave
allocate:
  %more = add i64 %bytes, 63
  %rounded = and i64 %more, -64
  %memory = call ptr @aligned_alloc(i64 64, i64 %rounded)
  %is_none = icmp eq ptr %memory, null
  br i1 %is_none, label %no_memory, label %with
with:
  call void %body(ptr %closure, i64 0, i64 %extent, ptr %memory)
  call void @free(ptr %memory)
  br label %leave
no_memory:
  call void @abort()
  unreachable
leave:
  ret void
}
"""
