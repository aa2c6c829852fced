"""A pool of streams: several calls of a program at the same time, in a queue with a bound (decision 23)."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from intarsia.runtime.call_queue import CallCounts, CallQueue, WaitingCall, call_args
from intarsia.runtime.executable import Executable
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.errors import UsageError
from intarsia.support.forks import reset_in_children
from intarsia.target.cpu import usable_cores

_WAITING_PER_STREAM: Final = 64
"""Default of the most calls that wait, by stream: enough for bursts, and little memory for their inputs."""


class Pool(ClosedOnExit):
    """Runs calls of one program on several streams, each a clone of an executable with its own memory.

    Calls begin in the order in which they came, whichever client sent them. One call is under way in each
    stream; others wait, and when too many do, a client waits at the door or gets an error. All streams share
    weights and code. A forked child starts streams of its own.

    Args:
        executable: A program; it stays open, and may be called beside the pool.
        streams: Number of calls that run at the same time; by default as many as there are cores for.
        threads: Number of threads of each stream.
        most_waiting: Maximum number of calls in the queue; by default 64 for each stream.
        clock: Function that returns the time in seconds, for deadlines.

    Raises:
        CompileError: A toolchain cannot run a kernel on so many threads.
        UsageError: A number is not positive, or the executable is closed.
    """

    def __init__(
        self,
        executable: Executable,
        streams: int | None = None,
        threads: int = 1,
        *,
        most_waiting: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        count = max(usable_cores(Path("/")) // max(threads, 1), 1) if streams is None else streams
        self.most_waiting = _WAITING_PER_STREAM * count if most_waiting is None else most_waiting
        if self.most_waiting < 1:
            raise UsageError(f"most_waiting is {self.most_waiting}, expected 1 or more")
        self.streams, self.threads = count, threads
        self._clock = clock
        self._clones = executable.clones(count, threads)
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
        self._queue = CallQueue(self.most_waiting, self._clock)
        self._threads: list[threading.Thread] = []
        # Threads refer to the queue and not to the pool, so that a pool that is dropped ends them.
        self._finalizer = weakref.finalize(self, _end, self._queue, self._threads, self._clones)

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
            PoolFullError: The queue is full, and `wait` is False.
            PoolClosedError: The pool is closed.
        """
        call = self._put(inputs, timeout, wait)
        self._queue.wait_for_admission(call)
        return call.future

    async def run_async(self, inputs: object, *, timeout: float | None = None, wait: bool = True) -> Any:
        """Run a call from asyncio; cancelling the task cancels a call that has not begun.

        Args:
            inputs: Inputs, as for `submit`.
            timeout: Time in seconds within which the call begins; None for any time.
            wait: Whether the task waits while the queue is full.

        Raises:
            IntarsiaError: As the future of `submit`.
        """
        return await asyncio.wrap_future(self._put(inputs, timeout, wait).future)

    def __call__(self, /, *args: object, **named: object) -> Any:
        """Run a call and wait for its result, as `Executable.__call__`."""
        if args and named:
            raise UsageError("a pool takes inputs in order or by name, and not both")
        return self.submit(named or args).result()

    def counts(self) -> CallCounts:
        """Return numbers of calls: done, failed, refused, late, cancelled, running, waiting."""
        return self._queue.counts()

    def close(self, *, cancel_waiting: bool = False) -> None:
        """End the streams after the calls under way; closing again does nothing.

        Args:
            cancel_waiting: Whether calls that wait fail with a PoolClosedError; else they run first.
        """
        self._is_closed = True
        self._queue.close(cancel_waiting)
        self._finalizer()

    def __repr__(self) -> str:
        return f"Pool({self._clones[0]!r}, streams={self.streams}, threads={self.threads})"

    def _put(self, inputs: object, timeout: float | None, wait: bool) -> WaitingCall:
        deadline = None if timeout is None else self._clock() + timeout
        call = WaitingCall(call_args(inputs), deadline)
        self._start_threads()  # before the call is put: a pool that is closed meanwhile runs it
        self._queue.put(call, wait)
        return call

    def _start_threads(self) -> None:
        if self._threads:
            return
        with self._lock:
            if self._threads or self._is_closed:
                return
            threads = [
                threading.Thread(
                    target=_run_stream,
                    args=(self._queue, clone),
                    name=f"intarsia-stream-{number}",
                    daemon=True,
                )
                for number, clone in enumerate(self._clones)
            ]
            self._threads.extend(threads)
            for thread in threads:
                thread.start()


def _run_stream(queue: CallQueue, executable: Executable) -> None:
    """Run calls until the queue is closed."""
    while (call := queue.take()) is not None:
        try:
            result = executable(*call.args)
        except BaseException as error:  # whatever it is belongs to the client, and the stream goes on
            queue.end(has_failed=True)
            call.future.set_exception(error)
        else:
            queue.end(has_failed=False)
            call.future.set_result(result)
            del result
        del call  # an idle stream keeps no array alive


def _end(queue: CallQueue, threads: Sequence[threading.Thread], clones: Sequence[Executable]) -> None:
    """End the streams and close their executables; waiting calls run before."""
    queue.close(cancels=False)
    for thread in threads:
        if thread is not threading.current_thread():  # a callback of a future may close the pool
            thread.join()
    for clone in clones:
        clone.close()
