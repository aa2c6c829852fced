"""The cores that this process may use now, whatever cores its threads have been given since.

`taskset -ap` moves every thread of a process. The cores of a worker do not tell that: the crew itself may
have put it there. The cores of a calling thread do not either: a program may pin its own threads. So one
thread that never runs, and that nothing else moves, stands for the process.
"""

from __future__ import annotations

import os
import threading

from intarsia.support.forks import reset_in_children


class _Resident:
    """The thread that stands for the process; started when it is first needed, and anew in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        reset_in_children(self)

    def reset_in_child(self) -> None:
        """Forget the parent's thread."""
        self._lock, self._thread = threading.Lock(), None

    def number(self) -> int:
        """The number that the system has given to the thread."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=threading.Event().wait, name="intarsia-cores", daemon=True
                )
                self._thread.start()
            number = self._thread.native_id
        assert number is not None
        return number


_RESIDENT = _Resident()


def process_cores() -> frozenset[int]:
    """The cores of the process; those of the thread that asks first, until somebody moves the process."""
    return frozenset(os.sched_getaffinity(_RESIDENT.number()))
