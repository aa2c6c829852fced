"""Which processes and files there are, for tests that nothing is left behind."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from intarsia.measure.worker_pool.process_tree import children

PATIENCE_S = 30.0


def until(condition: Callable[[], bool]) -> bool:
    """Whether the condition comes true in time."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def open_files() -> int:
    """How many file descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def own_children() -> set[int]:
    """The children of this process."""
    return set(children(os.getpid()))


def own_descendants() -> set[int]:
    """The children of this process, theirs, and so on: also workers of an older fork server."""
    running, waiting = set[int](), [os.getpid()]
    while waiting:
        below = children(waiting.pop())
        running.update(below)
        waiting += below
    return running


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Fail if there are more open files, other children or more threads after the block than before it.

    What earlier tests left to the garbage collector may end at any moment, so it is collected first, and
    less than before is no fault of the block.
    """
    gc.collect()
    files, running, threads = open_files(), own_children(), threading.active_count()
    yield
    assert own_children() <= running
    assert threading.active_count() <= threads
    assert open_files() <= files
