"""A pool of streams: several calls of a program at the same time, in a queue with a bound (decision 23)."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, NamedTuple

from intarsia.runtime.async_results import AsyncResults
from intarsia.runtime.call_queue import CallCounts, CallQueue, WaitingCall, call_args
from intarsia.runtime.executable import Executable
from intarsia.runtime.input_check import InputCheck
from intarsia.runtime.joined_calls import BatchKey, batch_key, joining_complaint, run_joined
from intarsia.runtime.output_check import structured
from intarsia.runtime.plan import TensorInfo
from intarsia.runtime.series_length import SeriesLength
from intarsia.runtime.stream_choice import StreamChoice
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.errors import UsageError
from intarsia.support.forks import reset_in_children
from intarsia.target.cpu import usable_cores

_WAITING_PER_STREAM: Final = 64
"""Default of the most calls that wait, by stream: enough for bursts, and little memory for their inputs."""


class Pool(ClosedOnExit):
    """Runs calls of one program on several streams, each a clone of an executable with its own memory.

    Calls begin in the order in which they came, whichever client sent them. One call is under way in each
    stream; others wait, and when too many do, a client waits at the door or gets an error. A client that
    waits for its result runs the call in its own thread if a stream is idle and no call waits. All streams
    share weights and code. A forked child starts threads of its own.

    Args:
        executable: A program; it stays open, and may be called beside the pool.
        streams: Number of calls that run at the same time; by default what `intarsia tune` has measured
            as the best for the program, else as many as there are cores for.
        threads: Number of threads of each stream; by default the measured number, else 1.
        batch: Number of items up to which waiting calls are run as one; 1 for no joining. Items must not
            depend on one another. By default the measured number, else 1.
        most_waiting: Maximum number of calls in the queue; by default 64 for each stream.
        clock: Function that returns the time in seconds, for deadlines.

    Raises:
        CompileError: A toolchain cannot run a kernel on so many threads.
        UsageError: A number is not positive, calls cannot be joined, or the executable is closed.
    """

    def __init__(
        self,
        executable: Executable,
        streams: int | None = None,
        threads: int | None = None,
        batch: int | None = None,
        *,
        most_waiting: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.choice = _choose(executable.plan.streams, streams, threads, batch)
        waiting = _WAITING_PER_STREAM * max(self.choice.streams, self.choice.batch)
        self.most_waiting = waiting if most_waiting is None else most_waiting
        for name, number in (("most_waiting", self.most_waiting), ("batch", self.choice.batch)):
            if number < 1:
                raise UsageError(f"{name} is {number}, expected 1 or more")
        if self.choice.batch > 1 and (complaint := joining_complaint(executable.plan)):
            raise UsageError(complaint, help="leave out batch, or export the model with a dynamic batch")
        self._clock = clock
        self._accept = InputCheck(executable.plan.inputs, executable.plan.dim_ranges).accept
        self._clones = executable.clones(self.choice.streams, self.choice.threads)
        self._runs_series = self.choice.batch == 1 and self._clones[0].has_series
        self._lock = threading.Lock()
        self._open()
        reset_in_children(self)

    def reset_in_child(self) -> None:
        """Begin anew in a forked child: the parent has the threads, and the calls that wait are its own."""
        self._lock = threading.Lock()
        self._finalizer.detach()
        if not self._is_closed:
            self._open()

    def _open(self) -> None:
        self._is_closed = False
        self._queue = CallQueue(self._clones, self.most_waiting, self._clock)
        self._async_results = AsyncResults()
        self._threads: list[threading.Thread] = []
        # Threads refer to the queue and not to the pool, so that a pool that is dropped ends them.
        self._finalizer = weakref.finalize(self, _end, self._queue, self._threads, self._clones)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Name and type of each input."""
        return self._clones[0].inputs

    def submit(self, inputs: object, *, timeout: float | None = None, wait: bool = True) -> Future[Any]:
        """Send a call, and return the future of what `Executable.__call__` returns.

        The future fails with the errors of `Executable.__call__`, with a DeadlineError, or with a
        PoolClosedError. It can be cancelled until the call begins. Leave the arrays as they are until it has
        ended.

        Args:
            inputs: Inputs in order (tuple or list), by name (mapping), or the only one.
            timeout: Time in seconds within which the call begins; None for any time.
            wait: Whether this method waits while the queue is full.

        Raises:
            InputError: An input does not fit, if calls are joined; else the future fails with it.
            PoolFullError: The queue is full, and `wait` is False.
            PoolClosedError: The pool is closed.
        """
        call = self._put(self._checked_args(inputs), timeout, wait)
        self._queue.wait_for_admission(call)
        return call.future

    async def run_async(self, inputs: object, *, timeout: float | None = None, wait: bool = True) -> Any:
        """Run a call from asyncio; cancelling the task cancels a call that has not begun.

        Args:
            inputs: Inputs, as for `submit`.
            timeout: Time in seconds within which the call begins; None for any time.
            wait: Whether the task waits while the queue is full.

        Raises:
            IntarsiaError: The call fails as the future of `submit` would.
        """
        call = self._put(self._checked_args(inputs), timeout, wait)
        return await self._async_results.wait_for(call.future)

    def __call__(self, /, *args: object, **named: object) -> Any:
        """Run a call and wait for its result, as `Executable.__call__`.

        It runs in this thread if a stream is idle and no other call waits.
        """
        if args and named:
            raise UsageError("a pool takes inputs in order or by name, and not both")
        checked = self._checked_args(named or args)
        borrowed: list[Executable] = []
        done = 0
        try:
            if not self._queue.borrow(borrowed):
                call = self._put(checked, None, True)
                self._queue.wait_for_admission(call)
                return call.future.result()
            result = borrowed[0](*checked[0])
            done = 1
            return result
        finally:
            if borrowed:
                self._queue.give_back(borrowed[0], done, 1 - done, takes_next=False)

    def counts(self) -> CallCounts:
        """Return numbers of calls: done, failed, refused, late, cancelled, running, waiting."""
        return self._queue.counts()

    def close(self, *, cancel_waiting: bool = False) -> None:
        """Close the streams after the calls under way; closing again does nothing.

        Args:
            cancel_waiting: Whether calls that wait fail with a PoolClosedError; else they run first.
        """
        self._is_closed = True
        self._queue.close(cancel_waiting)
        self._finalizer()

    def __repr__(self) -> str:
        choice = self.choice
        return f"Pool({self._clones[0]!r}, {choice.streams}, {choice.threads}, {choice.batch})"

    def _put(
        self, checked: tuple[Sequence[object], BatchKey | None], timeout: float | None, wait: bool
    ) -> WaitingCall:
        deadline = None if timeout is None else self._clock() + timeout
        call = WaitingCall(checked[0], deadline, checked[1])
        self._start_threads()  # before the call is put: a pool that is closed meanwhile runs it
        self._queue.put(call, wait)
        return call

    def _checked_args(self, inputs: object) -> tuple[Sequence[object], BatchKey | None]:
        """Return inputs in order, with what calls have in common that may be joined with this one."""
        args = call_args(inputs)
        if self.choice.batch == 1:
            return args, None
        # What is joined is checked before, so that an error is that of its client.
        checked = self._accept(args, {})
        return checked, batch_key(checked)

    def _start_threads(self) -> None:
        if self._threads:
            return
        with self._lock:
            if self._threads or self._is_closed:
                return
            threads = [
                threading.Thread(
                    target=_run_calls,
                    args=(self._queue, self.choice.batch, self._runs_series),
                    name=f"intarsia-stream-{number}",
                    daemon=True,
                )
                for number in range(len(self._clones))
            ]
            self._threads.extend(threads)
            for thread in threads:
                thread.start()


def _choose(
    measured: StreamChoice | None, streams: int | None, threads: int | None, batch: int | None
) -> StreamChoice:
    """Return the numbers of a pool: those given, those measured for the program, or those of this machine."""
    if measured is not None and streams is None and threads is None and batch is None:
        return measured
    threads = 1 if threads is None else threads
    if streams is None:
        streams = max(usable_cores(Path("/")) // max(threads, 1), 1)
    return StreamChoice(streams, threads, 1 if batch is None else batch)


def _run_calls(queue: CallQueue[Executable], most_items: int, has_series: bool) -> None:
    """Run calls until the queue is closed."""
    length = SeriesLength()
    while (taken := queue.take(most_items, length.calls if has_series else 1)) is not None:
        stream, calls = taken
        begin = time.perf_counter()
        outcomes = _run_together(stream, calls, most_items) or [_run(stream, call) for call in calls]
        length.note(len(calls), time.perf_counter() - begin)
        failed = sum(not outcome.is_result for outcome in outcomes)
        # Before the futures end: their callbacks may close the pool, which waits for all streams.
        queue.give_back(stream, len(calls) - failed, failed, takes_next=True)
        for call, outcome in zip(calls, outcomes, strict=True):
            outcome.pass_to(call.future)
        del taken, stream, calls, outcomes, call, outcome  # an idle thread keeps no array alive


class _Outcome(NamedTuple):
    """A result, or the error in its place."""

    is_result: bool
    value: Any

    def pass_to(self, future: Future[Any]) -> None:
        """End a future."""
        if self.is_result:
            future.set_result(self.value)
        else:
            future.set_exception(self.value)


def _run(executable: Executable, call: WaitingCall) -> _Outcome:
    try:
        return _Outcome(True, executable(*call.args))
    except BaseException as error:  # whatever it is belongs to the client, and the thread goes on
        return _Outcome(False, error)


def _run_together(executable: Executable, calls: Sequence[WaitingCall], most_items: int) -> list[_Outcome]:
    """Run several calls as one or in a series; no outcome if that fails: each runs by itself then.

    So an error is that of its own client.
    """
    if len(calls) == 1:
        return []
    args = [call.args for call in calls]
    try:
        results = run_joined(executable.run_flat, args) if most_items > 1 else executable.run_series(args)
    except Exception:
        return []
    structure = executable.plan.output_structure
    return [_Outcome(True, structured(structure, result)) for result in results]


def _end(
    queue: CallQueue[Executable], threads: Sequence[threading.Thread], clones: Sequence[Executable]
) -> None:
    """End the threads and close the streams; waiting calls run before."""
    queue.close(cancels=False)
    for thread in threads:
        if thread is not threading.current_thread():  # a callback of a future may close the pool
            thread.join()
    queue.wait_until_idle()  # clients may have borrowed some
    for clone in clones:
        clone.close()
