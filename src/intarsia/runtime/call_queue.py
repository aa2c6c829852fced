"""The calls that wait for a stream of a pool: first come, first served, with deadlines and a bound.

A call is admitted or stands at the door. At most a fixed number of calls are admitted; the others enter in
their order as soon as one of those leaves. A client that may wait is held up at the door: back pressure.
Deadlines are noticed when a call comes or a stream becomes free. So there is no thread that watches them, and
a call fails late by no more than what the streams are doing at that time.
"""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from intarsia.runtime.joined_calls import BatchKey
from intarsia.support.errors import CallRefusedError, DeadlineError, PoolClosedError, PoolFullError

_FEW_DEADLINES: Final = 64
"""Number of deadlines up to which those of calls that wait no more are not looked for."""


@dataclass(eq=False)
class WaitingCall:
    """A call of a pool.

    Attributes:
        args: Inputs in order, or a mapping of all of them.
        deadline: Time of the queue's clock in seconds by which the call begins; None for none.
        key: Key of the calls that it may be run with as one; None if it runs by itself.
        future: Future of its result.
        admitted: Event that is set when the call is admitted, or waits no more.
        number: Number of the call in the order of arrival.
    """

    args: Sequence[object]
    deadline: float | None = None
    key: BatchKey | None = None
    future: Future[Any] = field(default_factory=Future)
    admitted: threading.Event = field(default_factory=threading.Event)
    number: int = 0

    def refuse(self, error: CallRefusedError) -> bool:
        """Let the future fail; False if its client has cancelled it before."""
        is_refused = self.future.set_running_or_notify_cancel()
        if is_refused:
            self.future.set_exception(error)
        self.admitted.set()
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


class CallQueue:
    """A queue of calls, for any number of clients and streams.

    Args:
        most_waiting: Maximum number of calls that are admitted, 1 or more.
        clock: Function that returns the time in seconds.
    """

    def __init__(self, most_waiting: int, clock: Callable[[], float]) -> None:
        self._most_waiting = most_waiting
        self._clock = clock
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
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
        with self._lock:
            overdue = self._remove_overdue()
        self._refuse_late(overdue)
        with self._lock:
            if self._is_closed:
                raise PoolClosedError("the pool is closed")
            waiting = len(self._admitted) + len(self._at_door)
            if not can_wait and waiting >= self._most_waiting:
                self._counts.refused += 1
                raise PoolFullError(
                    f"{waiting} calls wait, and the pool takes {self._most_waiting}",
                    help="send it later, or let it wait (wait=True)",
                )
            self._numbers += 1
            call.number = self._numbers
            self._at_door[call.number] = call
            if call.deadline is not None:
                self._note_deadline(call.deadline, call.number)
            self._admit()
        # By number: a future that refers to its call would keep inputs and results alive.
        call.future.add_done_callback(partial(self._leave, call.number))

    def wait_for_admission(self, call: WaitingCall) -> None:
        """Wait until a call is admitted, has failed, is cancelled or is too late."""
        while not call.admitted.is_set():
            left = None if call.deadline is None else call.deadline - self._clock()
            if not call.admitted.wait(left if left is None else max(left, 0)):
                with self._lock:
                    overdue = self._remove_overdue()
                self._refuse_late(overdue)

    def take(self, most_items: int = 1) -> list[WaitingCall]:
        """Wait for the next call, which runs from now on; empty once the queue is closed and empty.

        Args:
            most_items: Number of items up to which calls right behind it come along, if they fit.
        """
        calls = [call] if (call := self._take_one()) is not None else []
        if most_items > 1 and calls and calls[0].key is not None:
            calls += self._take_fitting(calls[0].key, most_items)
        return calls

    def _take_fitting(self, key: BatchKey, most_items: int) -> list[WaitingCall]:
        calls: list[WaitingCall] = []
        items = key.items
        while True:
            with self._lock:
                following = next(iter(self._admitted.values()), None)
                if following is None or following.key is None or following.key.form != key.form:
                    return calls
                items += following.key.items
                if items > most_items:
                    return calls
                call = self._begin_next()
            if call is not None:
                calls.append(call)

    def _begin_next(self) -> WaitingCall | None:
        """Take the first call out; None if its client has just cancelled it; the caller holds the lock."""
        _, call = self._admitted.popitem(last=False)
        self._admit()
        has_begun = call.future.set_running_or_notify_cancel()
        self._counts.running += has_begun
        self._counts.cancelled += not has_begun
        return call if has_begun else None

    def _take_one(self) -> WaitingCall | None:
        while True:
            with self._lock:
                overdue, call = self._remove_overdue(), None
                if self._admitted:
                    call = self._begin_next()
                elif not overdue:
                    if self._is_closed:
                        return None
                    self._ready.wait()
                    continue
            self._refuse_late(overdue)
            if call is not None:
                return call

    def end(self, has_failed: bool) -> None:
        """Count a call that `take` returned as ended."""
        with self._lock:
            self._counts.running -= 1
            self._counts.failed += has_failed
            self._counts.done += not has_failed

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
            call.admitted.set()
            self._ready.notify()

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

    def _leave(self, number: int, future: Future[Any]) -> None:
        """Take out a call that its client has cancelled."""
        if not future.cancelled():
            return
        with self._lock:
            call = self._admitted.pop(number, None) or self._at_door.pop(number, None)
            self._admit()
        if call is not None:
            future.set_running_or_notify_cancel()  # wakes the threads that wait for the future
            call.admitted.set()
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
