"""Fork safety: locks and thread pools that a forked child has to replace.

A fork copies the whole memory but only the calling thread. A lock that another thread holds at that moment
stays locked in the child for ever, and a pool in the child waits for threads that do not exist there.
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
    """An object that replaces its locks and threads in each forked child."""

    def reset_in_child(self) -> None:
        """Replace state that the parent's threads own; called in the child before any other code."""


_REGISTERED: Final[weakref.WeakSet[ResetInChild]] = weakref.WeakSet()
# Held across the fork, so that no other thread changes the set while its memory is copied.
_LOCK: Final = threading.RLock()
# Held across every fork, and by blocks in which foreign code holds locks that a child could not release.
_WITHOUT_FORKS: Final = threading.RLock()


def reset_in_children(item: ResetInChild) -> None:
    """Call `item.reset_in_child` in every child that this process forks while the item is alive."""
    with _LOCK:
        _REGISTERED.add(item)


def prevent_destruction(item: object) -> None:
    """Leak an object of an engine in this process, a forked child, so that its destructor never runs.

    The destructor would join threads that exist in the parent only, and block for ever.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))


@contextmanager
def hold_off_forks() -> Iterator[None]:
    """Delay forks of this process until the block ends; only one thread at a time is in such a block.

    It protects foreign code with internal locks that a child cannot release. OpenBLAS, which NumPy calls,
    hangs in a child that was forked while another thread multiplied matrices.
    """
    with _WITHOUT_FORKS:
        yield


def _begin_fork() -> None:
    # A block of `hold_off_forks` that registers an object takes both locks in this order too: no deadlock.
    _WITHOUT_FORKS.acquire()
    _LOCK.acquire()


def _end_fork() -> None:
    _LOCK.release()
    _WITHOUT_FORKS.release()


class ForkSafeLock:
    """A lock for `with` that is free in a forked child, even if a thread of the parent held it."""

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
    # The child inherits both locks as acquired by the thread that forked, which is its only thread.
    _end_fork()
    for item in list(_REGISTERED):
        item.reset_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_begin_fork, after_in_parent=_end_fork, after_in_child=_begin_all_in_child)
