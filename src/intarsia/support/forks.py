"""What a forked child has to begin anew: locks that a thread of the parent held, and threads that are gone.

A fork copies the memory of all threads and only the calling thread. So a lock that another thread holds at
that moment stays locked in the child for ever, and pools wait for threads that do not exist there.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Protocol


class ResetInChild(Protocol):
    """An object with a method that is called in each forked child."""

    def reset_in_child(self) -> None:
        """Forget what belongs to the parent's threads; called in the child before anything else runs."""


_REGISTERED: Final[weakref.WeakSet[ResetInChild]] = weakref.WeakSet()
# Held across the fork, so that no other thread is changing the set while its memory is copied.
_LOCK: Final = threading.RLock()
# Held by blocks in which a fork would leave a lock of foreign code behind, and across every fork.
_WITHOUT_FORKS: Final = threading.RLock()


def reset_in_children(item: ResetInChild) -> None:
    """Have `item.reset_in_child` called in every child that this process forks while the item lives."""
    with _LOCK:
        _REGISTERED.add(item)


def prevent_destruction(item: object) -> None:
    """Keep an object of an engine from ever being destroyed in this process, a forked child.

    Its destructor would join threads that only the parent has, and wait for ever.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))


@contextmanager
def hold_off_forks() -> Iterator[None]:
    """Let forks of this process wait for the end of the block; one such block runs at a time.

    For code with locks of its own that nobody can free in a child: OpenBLAS, which NumPy calls, hangs in a
    child that was forked while another thread multiplied matrices.
    """
    with _WITHOUT_FORKS:
        yield


def _begin_fork() -> None:
    _WITHOUT_FORKS.acquire()
    _LOCK.acquire()


def _end_fork() -> None:
    _LOCK.release()
    _WITHOUT_FORKS.release()


class ForkSafeLock:
    """A lock for `with` that is free in a forked child, whatever the threads of the parent hold."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        reset_in_children(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def reset_in_child(self) -> None:
        """Replace the lock."""
        self._lock = threading.Lock()


def _begin_all_in_child() -> None:
    _end_fork()
    for item in list(_REGISTERED):
        item.reset_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_begin_fork, after_in_parent=_end_fork, after_in_child=_begin_all_in_child)
