"""The worker's side of parallel loops, as LLVM IR; `driver_text` describes the protocol.

Comments stand in Python and not in the IR: the text is the driver's identity in artifacts.
"""

from __future__ import annotations

from typing import Final

# A worker raises `done` only after its chunk, and reads `is_joining` after that; see `join`. While it spins
# it reads `loop` relaxed, to keep the cache line shared; `claim` orders what matters. `last` is the last loop
# of which it got no chunk: nothing of that is free any more. Before it sleeps it reads `signal`, announces
# itself in `sleepers`, and reads `loop` again: a loop published before the announcement is seen here, and one
# published after it changes `signal`, so that the futex does not sleep. `stop_workers` sets `is_closing`
# before it changes `signal`, so no worker sleeps through its end.
WORKER_TEXT: Final = """
define ptr @intarsia_worker(ptr %worker) nounwind {
entry:
  %own_pool_at = at worker.pool %worker
  %lane_at = at worker.lane %worker
  %pool = load ptr, ptr %own_pool_at
  %lane = load i64, ptr %lane_at
  %done_at = at pool.done %pool
  %joining_at = at pool.is_joining %pool
  %signal_at = at pool.signal %pool
  %sleepers_at = at pool.sleepers %pool
  %runs_at = at pool.runs %pool
  %closing_at = at pool.is_closing %pool
  %loop_at = at pool.loop %pool
  %last_at = alloca i64, align 8
  store i64 0, ptr %last_at
  %limit_at = at pool.worker_spin %pool
  %quiet_limit_at = at pool.quiet_spin %pool
  br label %work
work:
  %loop = load atomic i64, ptr %loop_at seq_cst, align 8
  %last = load i64, ptr %last_at
  %is_old = icmp eq i64 %loop, %last
  br i1 %is_old, label %idle, label %claim
claim:
  %chunk = call i64 @claim(ptr %pool, i64 %loop, i64 %lane)
  %is_empty = icmp slt i64 %chunk, 0
  br i1 %is_empty, label %leave_loop, label %run
leave_loop:
  store i64 %loop, ptr %last_at
  br label %idle
run:
  call void @run_chunk(ptr %pool, i64 %chunk, i64 %lane)
  %before = atomicrmw add ptr %done_at, i32 1 seq_cst
  %joining = load atomic i32, ptr %joining_at seq_cst, align 4
  %is_awaited = icmp ne i32 %joining, 0
  br i1 %is_awaited, label %tell, label %work
tell:
  call void @wake(ptr %done_at, i32 1)
  br label %work
idle:
  %ending = load atomic i32, ptr %closing_at monotonic, align 4
  %is_ending = icmp ne i32 %ending, 0
  br i1 %is_ending, label %leave, label %look
look:
  %turn = phi i64 [ 0, %idle ], [ %turn_next, %rest ], [ %turn_next, %clock ]
  %start = phi i64 [ 0, %idle ], [ %start, %rest ], [ %start_next, %clock ]
  %seen = load atomic i64, ptr %loop_at monotonic, align 8
  %any = icmp ne i64 %seen, %loop
  br i1 %any, label %work, label %rest
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
  %runs = load atomic i32, ptr %runs_at monotonic, align 4
  %is_quiet = icmp eq i32 %runs, 0
  %used_limit_at = select i1 %is_quiet, ptr %quiet_limit_at, ptr %limit_at
  %limit = load i64, ptr %used_limit_at
  %is_late = icmp ugt i64 %spent, %limit
  br i1 %is_late, label %announce, label %look
announce:
  %signal = load atomic i32, ptr %signal_at seq_cst, align 4
  %ignored = atomicrmw add ptr %sleepers_at, i32 1 seq_cst
  %closing = load atomic i32, ptr %closing_at seq_cst, align 4
  %is_closing = icmp ne i32 %closing, 0
  br i1 %is_closing, label %leave, label %check
check:
  %again = load atomic i64, ptr %loop_at seq_cst, align 8
  %is_left = icmp ne i64 %again, %loop
  br i1 %is_left, label %awake, label %sleep
sleep:
  call void @wait_while_equal(ptr %signal_at, i32 %signal)
  br label %awake
awake:
  %slept = atomicrmw sub ptr %sleepers_at, i32 1 seq_cst
  br label %work
leave:
  ret ptr null
}

define void @intarsia_stop_workers(ptr %pool) nounwind {
  %closing_at = at pool.is_closing %pool
  %signal_at = at pool.signal %pool
  store atomic i32 1, ptr %closing_at seq_cst, align 4
  %ignored = atomicrmw add ptr %signal_at, i32 1 seq_cst
  call void @wake(ptr %signal_at, i32 2147483647)
  ret void
}
"""
