"""The caller's side of parallel loops, as LLVM IR; `driver_text` describes the protocol.

Comments stand in Python and not in the IR: the text is the driver's identity in artifacts.
"""

from __future__ import annotations

from typing import Final

# The chunks of a loop are divided evenly among lanes, in order, so that a lane has the same part of each
# loop of as many iterations, and reads in its cache what it wrote; iterations among chunks as well. Lane 0
# is the caller, which begins first: `first_of_part` rounds up, so that it has the larger half.
#
# A lane takes its chunks from the front in loops of odd number and from the back in others: what it wrote
# last, which is still in its cache, is read first. Others take chunks from the opposite end.
#
# A ticket has the number of a loop, of chunks taken from the front, and of those taken from the back: 48, 8
# and 8 bits. One compare-and-swap takes a chunk; a failed one returns the present value, with which the loop
# tries again. A ticket of an earlier loop stands for a range of which nothing is taken yet, so that no thread
# has to write the tickets when a loop begins. A ticket of a later loop means that the loop is over: a thread
# that read `loop` long ago gets nothing. A loop ends only when all its chunks are done, so a thread that gets
# a chunk may read the fields of the loop: with plain loads, which the compare-and-swap orders. 2^48 loops of
# a microsecond take nine years, so the number of a loop does not come again.
CLAIM_TEXT: Final = """
define internal i64 @first_of_part(i64 %part, i64 %count, i64 %parts) nounwind {
  %product = mul i64 %part, %count
  %sum = add i64 %product, %parts
  %less = sub i64 %sum, 1
  %first = udiv i64 %less, %parts
  ret i64 %first
}

define internal i64 @claim_of(ptr %pool, i64 %loop, i64 %lane, i64 %lanes, i1 %is_other) nounwind {
entry:
  %chunks = and i64 %loop, 65535
  %number = lshr i64 %loop, 16
  %is_odd = trunc i64 %number to i1
  %is_front = xor i1 %is_other, %is_odd
  %lane_behind = add i64 %lane, 1
  %begin = call i64 @first_of_part(i64 %lane, i64 %chunks, i64 %lanes)
  %end = call i64 @first_of_part(i64 %lane_behind, i64 %chunks, i64 %lanes)
  %size = sub i64 %end, %begin
  %distance = mul i64 %lane, ${ticket_bytes}
  %offset = add i64 %distance, ${tickets}
  %ticket = getelementptr i8, ptr %pool, i64 %offset
  %first = load atomic i64, ptr %ticket seq_cst, align 8
  br label %look
look:
  %seen = phi i64 [ %first, %entry ], [ %found, %try ]
  %seen_number = lshr i64 %seen, 16
  %is_over = icmp ugt i64 %seen_number, %number
  br i1 %is_over, label %none, label %count
count:
  %is_begun = icmp eq i64 %seen_number, %number
  %seen_taken = and i64 %seen, 65535
  %taken = select i1 %is_begun, i64 %seen_taken, i64 0
  %front = lshr i64 %taken, 8
  %back = and i64 %taken, 255
  %both = add i64 %front, %back
  %any = icmp ult i64 %both, %size
  br i1 %any, label %try, label %none
try:
  %step = select i1 %is_front, i64 256, i64 1
  %next_taken = add i64 %taken, %step
  %base = shl i64 %number, 16
  %next = or i64 %base, %next_taken
  %pair = cmpxchg ptr %ticket, i64 %seen, i64 %next seq_cst seq_cst
  %found = extractvalue { i64, i1 } %pair, 0
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %claimed, label %look
claimed:
  %from_front = add i64 %begin, %front
  %last = sub i64 %end, 1
  %from_back = sub i64 %last, %back
  %chunk = select i1 %is_front, i64 %from_front, i64 %from_back
  ret i64 %chunk
none:
  ret i64 -1
}

define internal i64 @claim(ptr %pool, i64 %loop, i64 %lane) nounwind {
entry:
  %lanes_at = at pool.lanes %pool
  %lanes = load i64, ptr %lanes_at
  br label %look
look:
  %step = phi i64 [ 0, %entry ], [ %step_next, %next ]
  %far = add i64 %lane, %step
  %wrapped = sub i64 %far, %lanes
  %is_far = icmp uge i64 %far, %lanes
  %other = select i1 %is_far, i64 %wrapped, i64 %far
  %is_other = icmp ne i64 %step, 0
  %chunk = call i64 @claim_of(ptr %pool, i64 %loop, i64 %other, i64 %lanes, i1 %is_other)
  %is_none = icmp slt i64 %chunk, 0
  br i1 %is_none, label %next, label %leave
next:
  %step_next = add i64 %step, 1
  %is_left = icmp ult i64 %step_next, %lanes
  br i1 %is_left, label %look, label %leave
leave:
  ret i64 %chunk
}

define internal void @run_chunk(ptr %pool, i64 %chunk, i64 %lane) nounwind {
  %body_at = at pool.body %pool
  %closure_at = at pool.closure %pool
  %scratch_at = at pool.scratch %pool
  %stride_at = at pool.scratch_stride %pool
  %extent_at = at pool.extent %pool
  %chunks_at = at pool.chunks %pool
  %body = load ptr, ptr %body_at
  %closure = load ptr, ptr %closure_at
  %scratch = load ptr, ptr %scratch_at
  %stride = load i64, ptr %stride_at
  %extent = load i64, ptr %extent_at
  %chunks = load i64, ptr %chunks_at
  %chunk_behind = add i64 %chunk, 1
  %begin = call i64 @first_of_part(i64 %chunk, i64 %extent, i64 %chunks)
  %end = call i64 @first_of_part(i64 %chunk_behind, i64 %extent, i64 %chunks)
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
# `loop`, whose sequentially consistent store publishes them. Sleepers are counted after that store; see
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
  %p_body = at pool.body %pool
  %p_closure = at pool.closure %pool
  %p_scratch = at pool.scratch %pool
  %p_stride = at pool.scratch_stride %pool
  %p_extent = at pool.extent %pool
  %p_chunks = at pool.chunks %pool
  store ptr %body, ptr %p_body
  store ptr %closure, ptr %p_closure
  store ptr %scratch, ptr %p_scratch
  store i64 %stride, ptr %p_stride
  store i64 %extent, ptr %p_extent
  store i64 %chunks, ptr %p_chunks
  %done_at = at pool.done %pool
  store atomic i32 0, ptr %done_at monotonic, align 4
  %loop_at = at pool.loop %pool
  %before = load atomic i64, ptr %loop_at monotonic, align 8
  %number = lshr i64 %before, 16
  %number_next = add i64 %number, 1
  %base = shl i64 %number_next, 16
  %loop = or i64 %base, %chunks
  store atomic i64 %loop, ptr %loop_at seq_cst, align 8
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
  %chunk = call i64 @claim(ptr %pool, i64 %loop, i64 0)
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
