"""Threads of this process, of which any may end at any moment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TASKS = Path("/proc/self/task")


def task_names() -> dict[int, str]:
    """Return the name of each thread, by its number."""
    names: dict[int, str] = {}
    for task in TASKS.iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            names[int(task.name)] = (task / "comm").read_text().strip()
    return names


def tasks_named(name: str) -> set[int]:
    """Return the threads of a name."""
    return {task for task, its_name in task_names().items() if its_name == name}


@contextmanager
def pinned(tasks: Iterable[int], core: int) -> Iterator[None]:
    """Let threads run on one core, as `taskset -ap` does, and afterwards where they ran before."""
    before: dict[int, set[int]] = {}
    for task in tasks:
        with suppress(ProcessLookupError):
            before[task] = os.sched_getaffinity(task)
            os.sched_setaffinity(task, {core})
    try:
        yield
    finally:
        for task, cores in before.items():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(task, cores)
