"""The protocol of parallel loops, checked over all orders of its atomic steps.

The steps have the names of their blocks in `driver_loop_text` and `driver_worker_text`. Each is one access to
memory that threads share; what the driver does between two accesses belongs to the step before. Memory is
sequentially consistent here, as are the driver's accesses on which the protocol depends. Time is not part of
the model: a thread that spins may go to sleep at any moment.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any, Final, NamedTuple

import pytest

from intarsia.native.execution.crew import CHUNKS_PER_THREAD
from intarsia.native.execution.thread_pool import MOST_THREADS

IDLE_TICKET: Final = (0, 0, 0)
CALLER: Final = 0


class Thread(NamedTuple):
    """Where a thread is, and its registers."""

    block: str
    loop: int = 0
    chunks: int = 0
    step: int = 0
    seen: tuple[int, int, int] = IDLE_TICKET
    chunk: int = -1
    share: int = 0  # chunks that the caller ran, then those it awaits
    last: int = 0
    word: int = 0  # value with which a futex is compared


class State(NamedTuple):
    """Memory that threads share, the threads, and what ran."""

    threads: tuple[Thread, ...]
    tickets: tuple[tuple[int, int, int], ...]
    loop: tuple[int, int] = (0, 0)
    fields: tuple[int, int] = (0, 0)  # the number of the loop stands for its body and closure
    done: int = 0
    joining: bool = False
    signal: int = 0
    sleepers: int = 0
    ran: tuple[int, ...] = ()  # how often each chunk of the present loop ran


class FaultError(Exception):
    """A chunk ran twice, never, or after its loop, or no thread can go on."""


def first_of_part(part: int, count: int, parts: int) -> int:
    """As in the driver."""
    return (part * count + parts - 1) // parts


class Protocol:
    """All states of some lanes that run loops one after another.

    Args:
        lanes: Number of threads, the caller included.
        loops: Number of chunks of each loop.
        sleeps: Whether threads sleep; otherwise they spin until they may go on.
        fault: A planted fault: "no number" (tickets have none, the caller clears them), "early done" (a chunk
            is counted before it ran), "early look" (the caller looks before it announces its sleep), or none.
    """

    def __init__(self, lanes: int, loops: tuple[int, ...], sleeps: bool, fault: str = "") -> None:
        self.lanes, self.loops, self.sleeps, self.fault = lanes, loops, sleeps, fault

    def check(self) -> int:
        """Visit every state; return how many there are.

        Raises:
            FaultError: One of them is wrong.
        """
        caller, worker = Thread("publish"), Thread("work")
        start = State((caller, *[worker] * (self.lanes - 1)), (IDLE_TICKET,) * self.lanes)
        visited, stack = {start}, [start]
        while stack:
            state = stack.pop()
            following = [new for lane in range(self.lanes) for new in self.steps(state, lane)]
            if not following and state.threads[CALLER].block != "end":
                raise FaultError("no thread can go on")
            for new in following:
                if new not in visited:
                    visited.add(new)
                    stack.append(new)
        return len(visited)

    def steps(self, state: State, lane: int) -> list[State]:
        """Return the states to which one step of a thread leads; none if it waits."""
        thread = state.threads[lane]
        return list(getattr(self, f"{thread.block}_step")(state, lane, thread))

    def moved(self, state: State, lane: int, block: str, **registers: Any) -> State:
        """Return the state with a thread in another block."""
        thread = state.threads[lane]._replace(block=block, **registers)
        if block in ("end", "publish", "idle", "awake", "join_awake"):
            # Nothing reads these registers any more: fewer states differ.
            thread = thread._replace(step=0, seen=IDLE_TICKET, chunk=-1, word=0)
        if block == "work":
            thread = Thread("work", last=thread.last)
        return state._replace(threads=(*state.threads[:lane], thread, *state.threads[lane + 1 :]))

    # claim_of and claim: the caller and workers alike

    def range_of(self, thread: Thread, lane: int) -> tuple[int, int, int]:
        """Return the lane whose chunks the thread looks at, the first of them, and the end."""
        other = (lane + thread.step) % self.lanes
        begin = first_of_part(other, thread.chunks, self.lanes)
        return other, begin, first_of_part(other + 1, thread.chunks, self.lanes)

    def claim_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        """Entry: load the ticket."""
        other, _, _ = self.range_of(thread, lane)
        return [self.looked(state, lane, thread, state.tickets[other])]

    def looked(self, state: State, lane: int, thread: Thread, seen: tuple[int, int, int]) -> State:
        """Look and count: decide by registers alone."""
        _, begin, end = self.range_of(thread, lane)
        if seen[0] > thread.loop or sum(self.taken(thread, seen)) >= end - begin:
            if thread.step + 1 < self.lanes:
                return self.moved(state, lane, "claim", step=thread.step + 1)
            if lane == CALLER:
                return self.moved(state, lane, "join", share=thread.chunks - thread.share, step=0)
            return self.moved(state, lane, "idle", last=thread.loop)
        return self.moved(state, lane, "try", seen=seen)

    def taken(self, thread: Thread, seen: tuple[int, int, int]) -> tuple[int, int]:
        if self.fault == "no number":
            return seen[1:]
        return seen[1:] if seen[0] == thread.loop else (0, 0)

    def try_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        """Compare-and-swap of the ticket."""
        other, begin, end = self.range_of(thread, lane)
        if state.tickets[other] != thread.seen:
            return [self.looked(state, lane, thread, state.tickets[other])]
        front, back = self.taken(thread, thread.seen)
        is_front = (thread.step != 0) != (thread.loop % 2 == 1)
        number = 0 if self.fault == "no number" else thread.loop
        ticket = (number, front + is_front, back + (not is_front))
        chunk = begin + front if is_front else end - 1 - back
        tickets = (*state.tickets[:other], ticket, *state.tickets[other + 1 :])
        is_early = self.fault == "early done" and lane != CALLER
        block = "count_done" if is_early else "run"
        return [self.moved(state._replace(tickets=tickets), lane, block, chunk=chunk, step=0)]

    def run_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        """Run the chunk: read the fields of the loop, which must be those of the loop claimed from."""
        if state.fields != (thread.loop, thread.chunks):
            raise FaultError(f"a chunk of loop {thread.loop} ran in loop {state.fields[0]}")
        if state.threads[CALLER].block in ("end", "publish"):
            raise FaultError(f"a chunk of loop {thread.loop} ran after its end")
        ran = list(state.ran)
        ran[thread.chunk] += 1
        if ran[thread.chunk] > 1:
            raise FaultError(f"chunk {thread.chunk} of loop {thread.loop} ran twice")
        state = state._replace(ran=tuple(ran))
        if lane == CALLER:
            return [self.moved(state, lane, "claim", share=thread.share + 1, chunk=-1)]
        block = "work" if self.fault == "early done" else "count_done"
        return [self.moved(state, lane, block, chunk=-1)]

    # intarsia_parallel_for and join

    def publish_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        """Store the fields and `done`, which no other thread reads before `loop` changes."""
        number = state.loop[0] + 1
        chunks = self.loops[number - 1]
        state = state._replace(fields=(number, chunks), done=0, ran=(0,) * chunks)
        if self.fault == "no number":
            state = state._replace(tickets=(IDLE_TICKET,) * self.lanes)
        return [self.moved(state, lane, "store_loop", loop=number, chunks=chunks, share=0)]

    def store_loop_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return [
            self.moved(
                state._replace(loop=(thread.loop, thread.chunks)),
                lane,
                "sleepers" if self.sleeps else "claim",
            )
        ]

    def sleepers_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return [self.moved(state, lane, "wake" if state.sleepers else "claim")]

    def wake_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        """Change `signal`."""
        return [self.moved(state._replace(signal=state.signal + 1), lane, "wake_call")]

    def wake_call_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        """The futex call: it wakes any chunks - 1 of the workers that sleep."""
        asleep = [lane for lane, other in enumerate(state.threads) if other.block == "asleep"]
        results = []
        for chosen in combinations(asleep, min(len(asleep), thread.chunks - 1)):
            new = state
            for other in chosen:
                new = self.moved(new, other, "awake")
            results.append(self.moved(new, lane, "claim"))
        return results

    def join_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        """Spin, or announce the sleep at any moment."""
        if state.done == thread.share:
            return [self.ended(state, lane)]
        if not self.sleeps:
            return []
        if self.fault == "early look":  # reads `done` for the last time before it announces its sleep
            return [self.moved(state, lane, "late_announce", word=state.done)]
        return [self.moved(state, lane, "join_announce")]

    def late_announce_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return [self.moved(state._replace(joining=True), lane, "join_asleep")]

    def join_announce_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return [self.moved(state._replace(joining=True), lane, "join_sleep")]

    def join_sleep_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        if state.done == thread.share:
            return [self.moved(state, lane, "join_awake")]
        return [self.moved(state, lane, "join_wait", word=state.done)]

    def join_wait_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        """The futex call compares and goes to sleep in one step."""
        return [self.moved(state, lane, "join_asleep" if state.done == thread.word else "join_sleep")]

    def join_asleep_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return []

    def join_awake_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return [self.ended(state._replace(joining=False), lane)]

    def ended(self, state: State, lane: int) -> State:
        if any(times != 1 for times in state.ran):
            raise FaultError(f"loop {state.loop[0]} ended with its chunks run {state.ran} times")
        return self.moved(state, lane, "publish" if state.loop[0] < len(self.loops) else "end", word=0)

    def end_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return []

    # intarsia_worker

    def work_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        number, chunks = state.loop
        block = "idle" if number == thread.last else "claim"
        return [self.moved(state, lane, block, loop=number, chunks=chunks, step=0, seen=IDLE_TICKET)]

    def count_done_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        after = "run" if self.fault == "early done" else "work"
        return [self.moved(state._replace(done=state.done + 1), lane, "joining" if self.sleeps else after)]

    def joining_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        after = "run" if self.fault == "early done" else "work"
        return [self.moved(state, lane, "tell" if state.joining else after)]

    def tell_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        if state.threads[CALLER].block == "join_asleep":
            state = self.moved(state, CALLER, "join_sleep")
        return [self.moved(state, lane, "run" if self.fault == "early done" else "work")]

    def idle_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        """Spin until `loop` changes, or announce the sleep at any moment."""
        if state.loop[0] != thread.loop:
            return [self.moved(state, lane, "work")]
        return [self.moved(state, lane, "announce")] if self.sleeps else []

    def announce_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return [self.moved(state, lane, "add_sleeper", word=state.signal)]

    def add_sleeper_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return [self.moved(state._replace(sleepers=state.sleepers + 1), lane, "check")]

    def check_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return [self.moved(state, lane, "sleep" if state.loop[0] == thread.loop else "awake")]

    def sleep_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        """The futex call compares and goes to sleep in one step."""
        return [self.moved(state, lane, "asleep" if state.signal == thread.word else "awake")]

    def asleep_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return []

    def awake_step(self, state: State, lane: int, thread: Thread) -> list[State]:
        return [self.moved(state._replace(sleepers=state.sleepers - 1), lane, "work", word=0)]


SLEEPING: Final = [(2, (1, 1)), (2, (2, 1)), (2, (2, 2))]
SPINNING: Final = [(2, (4, 4)), (2, (3, 2, 4)), (3, (1, 1)), (3, (2, 1))]
COUNTS: Final = range(1, 5)
MORE: Final = [
    *((2, (first, second), True) for first in COUNTS for second in COUNTS),
    *((3, loops, False) for loops in [(1, 4), (2, 3), (3, 2), (4, 1), (4, 4)]),
    (2, (9, 9), False),
]
CASES: Final = [
    *((lanes, loops, True) for lanes, loops in SLEEPING),
    *((lanes, loops, False) for lanes, loops in SPINNING),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE),
]


@pytest.mark.parametrize(("lanes", "loops", "sleeps"), CASES)
def test_every_chunk_runs_once_in_its_loop(lanes: int, loops: tuple[int, ...], sleeps: bool) -> None:
    assert Protocol(lanes, loops, sleeps).check() > 50


@pytest.mark.parametrize(
    ("fault", "sleeps", "message"),
    [
        ("no number", False, "a chunk of loop 1 ran in loop 2"),
        ("early done", False, "ended with its chunks run|ran in loop|after its end"),
        ("early look", True, "no thread can go on"),
    ],
)
def test_planted_faults_are_seen(fault: str, sleeps: bool, message: str) -> None:
    with pytest.raises(FaultError, match=message):
        Protocol(2, (2, 2), sleeps, fault).check()


def test_counts_fit_their_bits() -> None:
    """8 bits for the chunks taken from each end of a range, 16 for the chunks of a loop."""
    assert CHUNKS_PER_THREAD < 1 << 8
    assert CHUNKS_PER_THREAD * MOST_THREADS < 1 << 16
    for lanes in (2, 3, 64, 127, 128, MOST_THREADS):
        for chunks in (
            2,
            lanes - 1,
            lanes,
            lanes + 1,
            CHUNKS_PER_THREAD * lanes - 1,
            CHUNKS_PER_THREAD * lanes,
        ):
            bounds = [first_of_part(lane, chunks, lanes) for lane in range(lanes + 1)]
            assert (bounds[0], bounds[-1]) == (0, chunks)
            assert all(0 <= end - begin <= CHUNKS_PER_THREAD for begin, end in pairwise(bounds))
