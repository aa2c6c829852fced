"""Run nested generators on an explicit stack: recursion of any depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

Task: TypeAlias = "Iterator[Task]"
"""Work that yields the work to be done before it goes on."""


def run_task(task: Task) -> None:
    """Run a task and, each before it goes on, those that it yields."""
    stack = [task]
    while stack:
        inner = next(stack[-1], None)
        if inner is None:
            stack.pop()
        else:
            stack.append(inner)
