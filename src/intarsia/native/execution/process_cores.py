"""The cores that this process may use now, independent of the affinity of its threads.

`taskset -ap` moves every thread of a process. The affinity of a worker does not show that, since the crew may
have set it. Nor does the affinity of a calling thread, since a program may pin its threads. So one thread
that never runs, and that nothing else moves, represents the process.
"""

from __future__ import annotations

import os
import threading

from intarsia.support.forks import reset_in_children


class _IdleThread:
    """The thread that represents the process; started on first use, and again in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        reset_in_children(self)

    def reset_in_child(self) -> None:
        """Forget the parent's thread."""
        self._lock, self._thread = threading.Lock(), None

    def start(self) -> int:
        """Start the thread if it does not run yet, and return its system id."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=threading.Event().wait, name="intarsia-cores", daemon=True
                )
                self._thread.start()
            thread_id = self._thread.native_id
        assert thread_id is not None
        return thread_id


_IDLE_THREAD = _IdleThread()


def process_cores() -> frozenset[int]:
    """Return the cores of the process: those of the first calling thread, until the process is moved."""
    return frozenset(os.sched_getaffinity(_IDLE_THREAD.start()))
