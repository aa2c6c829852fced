"""Pages that memory gets in the background, before a call needs them.

A page that is touched first costs 0.4 us (a huge page's share, where the machine has one ready) to 2.3 us for
each 4 KiB: results of 77 MB take 7 to 180 ms. A thread takes the pages of memory that is expected to grow, so
that the first call of a larger size does not wait for them.

It has the priority of other threads: with a lower one, a busy machine would stop it while it holds the
interpreter lock, which calls wait for. It takes 2 MiB at once, without that lock.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from typing import Final, Protocol

from intarsia.support.environment import MEMORY_AHEAD
from intarsia.support.forks import reset_in_children
from intarsia.support.free_memory import free_memory

THREAD_NAME: Final = "intarsia-pages"
_MOST_AHEAD: Final = 256
"""MiB of pages in a process that no value has needed so far: two results of 350 tokens of GPT-2 are 140."""
_SHARE_OF_FREE: Final = 8
"""Pages ahead are at most this part of the memory that is free."""
_DELAY_S: Final = 0.01
"""Seconds before a thread begins: what is loaded only to be looked at is closed by then."""


class GrowsAhead(Protocol):
    """Memory that can take pages beyond those that it needs."""

    @property
    def bytes_ahead(self) -> int:
        """Bytes with pages that no value has needed so far."""

    def take_ahead(self, size: int) -> bool:
        """Take some pages, up to `size` bytes from the begin; return whether any were missing."""


class PagesAhead:
    """A thread that takes pages for all memory of this process; it ends when there is nothing to do.

    It has no strong reference to memory while it waits: what is closed goes back to the system.

    Args:
        most: Bytes that no value has needed so far, of all memory together.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._memories: weakref.WeakSet[GrowsAhead] = weakref.WeakSet()
        self._jobs: deque[tuple[weakref.ref[GrowsAhead], int]] = deque()
        self._thread: threading.Thread | None = None
        reset_in_children(self)

    def request(self, memory: GrowsAhead, size: int) -> None:
        """Take pages for the first `size` bytes of some memory in the background."""
        if self._most <= 0:
            return
        with self._lock:
            self._memories.add(memory)
            self._jobs.append((weakref.ref(memory), size))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=THREAD_NAME, daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:  # no more threads, or the interpreter ends: calls take their pages
                    self._thread = None
                    self._jobs.clear()

    def wait(self) -> None:
        """Wait until nothing is left to do."""
        while (thread := self._thread) is not None:
            thread.join()

    def reset_in_child(self) -> None:
        """Forget the thread and its jobs, which only the parent has."""
        self._lock = threading.Lock()
        self._memories, self._jobs, self._thread = weakref.WeakSet(), deque(), None

    def _work(self) -> None:
        time.sleep(_DELAY_S)
        while True:
            with self._lock:
                if not self._jobs:
                    self._thread = None
                    return
                reference, size = self._jobs.popleft()
            while self._has_room() and _take(reference, size):
                pass

    def _has_room(self) -> bool:
        with self._lock:
            ahead = sum(memory.bytes_ahead for memory in self._memories)
        return ahead < min(self._most, free_memory() // _SHARE_OF_FREE)


def _take(reference: weakref.ref[GrowsAhead], size: int) -> bool:
    """Take some pages of memory, unless it is gone; return whether there may be more to take."""
    memory = reference()
    return memory is not None and memory.take_ahead(size)


def _most_ahead() -> int:
    """Return the bytes that a process takes ahead at most, as its environment says."""
    text = os.environ.get(MEMORY_AHEAD, "")
    return (int(text) if text.isdigit() else _MOST_AHEAD) << 20


PAGES_AHEAD: Final = PagesAhead(_most_ahead())
"""The thread of this process."""
