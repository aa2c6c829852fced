"""The streams of a pool and the calls that wait for one: first come, first served, deadlines, a bound.

A call is admitted or stands at the door. At most a fixed number of calls are admitted; the others enter in
their order as soon as one of those leaves. A client that may wait is held up at the door: back pressure.
Deadlines are noticed when a call comes or a stream becomes free. So there is no thread that watches them, and
a call fails late by no more than what the streams are doing at that time.

A stream is idle or taken. Threads of the pool take one with the next call. A client that waits for its result
may borrow an idle one while no call waits: it overtakes none, and no other thread has to wake up for it.
"""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from intarsia.runtime.joined_calls import BatchKey
from intarsia.support.errors import CallRefusedError, DeadlineError, PoolClosedError, PoolFullError

_FEW_DEADLINES: Final = 64
"""Number of deadlines up to which those of calls that wait no more are not looked for."""

Stream = TypeVar("Stream")


class CallFuture(Future[Any]):
    """The future of a call; cancelling it takes the call out of its queue at once.

    Attributes:
        leave: Function that takes the call of a number out of the queue; None until it is put there.
        number: Number of the call. Not the call itself: a future must not keep inputs alive.
    """

    leave: Callable[[int], None] | None = None
    number: int = 0

    def cancel(self) -> bool:
        """Cancel the call unless it has begun; return whether it is cancelled."""
        is_cancelled = super().cancel()
        if is_cancelled and self.leave is not None:
            self.leave(self.number)
        return is_cancelled


@dataclass(eq=False, slots=True)
class WaitingCall:
    """A call of a pool.

    Attributes:
        args: Inputs in order, or a mapping of all of them.
        deadline: Time of the queue's clock in seconds by which the call begins; None for none.
        key: Key of the calls that it may be run with as one; None if it runs by itself.
        future: Future of its result.
        at_door: Event that is set when the call waits at the door no more; None if it never has.
        number: Number of the call in the order of arrival.
    """

    args: Sequence[object]
    deadline: float | None = None
    key: BatchKey | None = None
    future: CallFuture = field(default_factory=CallFuture)
    at_door: threading.Event | None = None
    number: int = 0

    def leave_door(self) -> None:
        """Wake the client if it waits at the door."""
        if self.at_door is not None:
            self.at_door.set()

    def refuse(self, error: CallRefusedError) -> bool:
        """Let the future fail; False if its client has cancelled it before."""
        is_refused = self.future.set_running_or_notify_cancel()
        if is_refused:
            self.future.set_exception(error)
        self.leave_door()
        return is_refused


@dataclass(slots=True)
class CallCounts:
    """Numbers of calls since the pool was opened.

    Attributes:
        done: Calls that ended with a result.
        failed: Calls that ended with an error.
        refused: Calls that found the queue full.
        late: Calls whose deadline passed.
        cancelled: Calls that their clients cancelled before they began.
        running: Calls that run now.
        waiting: Calls that wait now, with those at the door.
    """

    done: int = 0
    failed: int = 0
    refused: int = 0
    late: int = 0
    cancelled: int = 0
    running: int = 0
    waiting: int = 0


class CallQueue(Generic[Stream]):
    """A queue of calls and the streams that run them, for any number of clients and threads.

    Args:
        streams: The streams, all idle.
        most_waiting: Maximum number of calls that are admitted, 1 or more.
        clock: Function that returns the time in seconds.
    """

    def __init__(self, streams: Sequence[Stream], most_waiting: int, clock: Callable[[], float]) -> None:
        # The last one is taken first: its memory is the most likely to be in a cache.
        self._idle = list(streams)
        self._stream_count = len(streams)
        self._most_waiting = most_waiting
        self._clock = clock
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._all_idle = threading.Condition(self._lock)
        self._admitted: OrderedDict[int, WaitingCall] = OrderedDict()
        self._at_door: OrderedDict[int, WaitingCall] = OrderedDict()
        self._deadlines: list[tuple[float, int]] = []
        self._numbers = 0
        self._is_closed = False
        self._counts = CallCounts()

    def put(self, call: WaitingCall, can_wait: bool) -> None:
        """Add a call behind all others, without waiting for its admission.

        Args:
            call: New call.
            can_wait: Whether it may stand at the door.

        Raises:
            PoolFullError: It may not, and the queue is full.
            PoolClosedError: The pool is closed.
        """
        if self._deadlines:
            with self._lock:
                overdue = self._remove_overdue()
            self._refuse_late(overdue)
        with self._lock:
            self._refuse_if_closed()
            waiting = len(self._admitted) + len(self._at_door)
            if not can_wait and waiting >= self._most_waiting:
                self._counts.refused += 1
                raise PoolFullError(
                    f"{waiting} calls wait, and the pool takes {self._most_waiting}",
                    help="send it later, or let it wait (wait=True)",
                )
            self._numbers += 1
            call.number = call.future.number = self._numbers
            call.future.leave = self._leave
            if waiting < self._most_waiting:
                self._admitted[call.number] = call
                self._wake_for_idle_stream()
            else:
                call.at_door = threading.Event()
                self._at_door[call.number] = call
            if call.deadline is not None:
                self._note_deadline(call.deadline, call.number)

    def wait_for_admission(self, call: WaitingCall) -> None:
        """Wait until a call is admitted, has failed, is cancelled or is too late."""
        if call.at_door is None:
            return
        while not call.at_door.is_set():
            left = None if call.deadline is None else call.deadline - self._clock()
            if not call.at_door.wait(left if left is None else max(left, 0)):
                with self._lock:
                    overdue = self._remove_overdue()
                self._refuse_late(overdue)

    def borrow(self, borrowed: list[Stream]) -> bool:
        """Take an idle stream for a call that comes now, if no other call waits; False if there is none.

        Args:
            borrowed: Empty list to which the stream is added. Unlike a result, it is not lost when a signal
                handler raises before the caller has assigned it.

        Raises:
            PoolClosedError: The pool is closed.
        """
        with self._lock:
            self._refuse_if_closed()
            if self._admitted or self._at_door or not self._idle:
                return False
            borrowed.append(self._idle[-1])
            del self._idle[-1]
            self._counts.running += 1
        return True

    def give_back(self, stream: Stream, done: int, failed: int, *, takes_next: bool) -> None:
        """Make a stream idle again, and count its calls as ended.

        Args:
            stream: Stream that was taken or borrowed.
            done: Number of its calls that ended with a result.
            failed: Number of its calls that ended with an error.
            takes_next: Whether the caller will call `take` next, so that no other thread has to wake up.
        """
        with self._lock:
            if stream not in self._idle:  # a signal handler may have raised within `borrow`
                self._idle.append(stream)
            self._counts.running -= done + failed
            self._counts.failed += failed
            self._counts.done += done
            if len(self._idle) == self._stream_count:
                self._all_idle.notify_all()
            if not takes_next and (self._admitted or self._is_closed):
                self._ready.notify()

    def take(self, most_items: int = 1, most_calls: int = 1) -> tuple[Stream, list[WaitingCall]] | None:
        """Wait for the next call and a stream for it; None once the queue is closed and empty.

        Args:
            most_items: Number of items up to which calls right behind it come along, if they fit.
            most_calls: Number of calls up to which those right behind it come along that may be run one after
                the other: no more than the share of those that wait which each idle stream gets.
        """
        while True:
            with self._lock:
                overdue, calls = self._remove_overdue() if self._deadlines else (), []
                if self._admitted and self._idle:
                    calls = self._begin_next(most_items, most_calls)
                elif not overdue:
                    if self._is_closed and not self._admitted:
                        return None
                    self._ready.wait()
                    continue
                stream = self._idle.pop() if calls else None
            if overdue:
                self._refuse_late(overdue)
            if stream is not None:
                return stream, calls

    def _begin_next(self, most_items: int, most_calls: int) -> list[WaitingCall]:
        """Take out the first call with those behind it that fit; the caller holds the lock.

        Calls that their clients have just cancelled are not among them.
        """
        share = min(most_calls, -(-len(self._admitted) // len(self._idle)))
        first = self._begin_first()
        if first is None or first.key is None or most_items == 1:
            taken = [first]
            taken += [self._begin_first() for _ in range(min(share - 1, len(self._admitted)))]
            return [call for call in taken if call is not None]
        calls, items = [first], first.key.items
        while self._admitted:
            following = next(iter(self._admitted.values())).key
            if following is None or following.form != first.key.form:
                break
            items += following.items
            if items > most_items:
                break
            if (call := self._begin_first()) is not None:
                calls.append(call)
        return calls

    def _begin_first(self) -> WaitingCall | None:
        """Take the first call out; None if its client has just cancelled it; the caller holds the lock."""
        _, call = self._admitted.popitem(last=False)
        if self._at_door or self._is_closed:
            self._admit()
        has_begun = call.future.set_running_or_notify_cancel()
        self._counts.running += has_begun
        self._counts.cancelled += not has_begun
        return call if has_begun else None

    def close(self, cancels: bool) -> None:
        """Refuse new calls; let those that wait run, or fail.

        Args:
            cancels: Whether calls that wait fail with a PoolClosedError.
        """
        with self._lock:
            self._is_closed = True
            dropped: list[WaitingCall] = []
            if cancels:
                dropped = [*self._admitted.values(), *self._at_door.values()]
                self._admitted.clear()
                self._at_door.clear()
            self._ready.notify_all()
        for call in dropped:
            call.refuse(PoolClosedError("the pool was closed before the call began"))

    def wait_until_idle(self) -> None:
        """Wait until no stream is taken or borrowed; the queue is closed."""
        with self._lock:
            self._all_idle.wait_for(lambda: len(self._idle) == self._stream_count)

    def counts(self) -> CallCounts:
        """Return the numbers of calls so far."""
        with self._lock:
            waiting = len(self._admitted) + len(self._at_door)
            return replace(self._counts, waiting=waiting)

    def _admit(self) -> None:
        """Let calls in from the door; the caller holds the lock."""
        while self._at_door and len(self._admitted) < self._most_waiting:
            number, call = self._at_door.popitem(last=False)
            self._admitted[number] = call
            call.leave_door()
            self._wake_for_idle_stream()
        if self._is_closed and not self._admitted:
            self._ready.notify_all()  # the threads end

    def _wake_for_idle_stream(self) -> None:
        """Wake a thread for a call if a stream is idle; else the next thread that is through takes it."""
        if self._idle:
            self._ready.notify()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise PoolClosedError("the pool is closed")

    def _note_deadline(self, deadline: float, number: int) -> None:
        """Remember a deadline, and forget those of calls that wait no more; the caller holds the lock."""
        heapq.heappush(self._deadlines, (deadline, number))
        if len(self._deadlines) > 2 * (len(self._admitted) + len(self._at_door)) + _FEW_DEADLINES:
            waiting = self._admitted.keys() | self._at_door.keys()
            self._deadlines = [entry for entry in self._deadlines if entry[1] in waiting]
            heapq.heapify(self._deadlines)

    def _remove_overdue(self) -> list[WaitingCall]:
        """Take out the calls whose time is up; the caller holds the lock, and refuses them without it."""
        overdue = []
        while self._deadlines and self._deadlines[0][0] < self._clock():
            number = heapq.heappop(self._deadlines)[1]
            call = self._admitted.pop(number, None) or self._at_door.pop(number, None)
            if call is not None:
                overdue.append(call)
        if overdue:
            self._admit()
        return overdue

    def _refuse_late(self, calls: Sequence[WaitingCall]) -> None:
        # Callbacks of futures may call the pool: none of them runs under the lock.
        for call in calls:
            is_late = call.refuse(DeadlineError("the call did not begin before its deadline"))
            with self._lock:
                self._counts.late += is_late
                self._counts.cancelled += not is_late

    def _leave(self, number: int) -> None:
        """Take out a call that its client has cancelled."""
        with self._lock:
            call = self._admitted.pop(number, None) or self._at_door.pop(number, None)
            self._admit()
        if call is not None:
            call.future.set_running_or_notify_cancel()  # wakes the threads that wait for the future
            call.leave_door()
            self._count_cancelled()

    def _count_cancelled(self) -> None:
        with self._lock:
            self._counts.cancelled += 1


def call_args(inputs: object) -> Sequence[object]:
    """Return the arguments of a call, given as a mapping, a tuple or list, or a single one."""
    if isinstance(inputs, (tuple, list)):
        return inputs
    if isinstance(inputs, Mapping) and not inputs:
        return ()
    return (inputs,)
