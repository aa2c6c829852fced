"""Bring results of a pool's threads to tasks of asyncio, many with one wake-up of the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary


class AsyncResults:
    """Results for the tasks of any number of event loops.

    `asyncio.wrap_future` wakes its loop for every result, which costs a system call and the interpreter lock.
    Here a loop that has been woken and has not run yet finds all results that have come meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boxes: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopResults] = WeakKeyDictionary()

    async def wait_for(self, future: Future[Any]) -> Any:
        """Return the result of a future; cancelling the task cancels the future.

        Args:
            future: Future that ends in any thread.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            box = self._boxes.get(loop)
            if box is None:
                # Results that came too late for a loop refer to it, and would keep it alive.
                for closed in [other for other in self._boxes if other.is_closed()]:
                    del self._boxes[closed]
                box = self._boxes[loop] = _LoopResults()
        target: asyncio.Future[Any] = loop.create_future()
        future.add_done_callback(partial(box.add, loop, target))
        try:
            return await target
        except asyncio.CancelledError:
            future.cancel()
            raise


class _LoopResults:
    """Futures that have ended, for the tasks of an event loop."""

    def __init__(self) -> None:
        self._ended: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._is_woken = False

    def add(self, loop: asyncio.AbstractEventLoop, target: asyncio.Future[Any], ended: Future[Any]) -> None:
        """Add a future that has ended, and wake the loop unless it has been woken; in any thread."""
        self._ended.append((target, ended))
        # The order matters: `_pass_on` clears the flag before it looks, so that what is added behind its last
        # look finds the flag cleared. Two threads that both see it cleared wake the loop once too often.
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):  # the loop is closed: no task waits
                loop.call_soon_threadsafe(self._pass_on)

    def _pass_on(self) -> None:
        """Set the results that have come; in the thread of the loop."""
        self._is_woken = False
        while self._ended:
            target, ended = self._ended.popleft()
            if target.done():
                continue  # its task has been cancelled
            if ended.cancelled():
                target.cancel()
            elif isinstance(error := ended.exception(), StopIteration):  # asyncio's futures refuse it
                target.set_exception(RuntimeError(f"the call raised StopIteration({error})"))
            elif error is not None:
                target.set_exception(error)
            else:
                target.set_result(ended.result())
