"""A fake of the operating system's events."""

from __future__ import annotations

import os
from collections.abc import Sequence

from intarsia.runtime.hardware_counters import CounterEvent, EventReading


class FakeEvents:
    """Events that count what `work` adds; each reading itself counts 10.

    Args:
        threads: Numbers of the threads.
        refused: Error codes of the events that cannot be opened, by name.
        share: Share of the time for which events are counted.
    """

    def __init__(
        self, threads: Sequence[int] = (1,), refused: dict[str, int] | None = None, share: float = 1.0
    ) -> None:
        self._threads, self._refused, self._share = threads, refused or {}, share
        self._opened: list[CounterEvent | None] = []
        self._total = 0

    @property
    def open_files(self) -> int:
        return sum(event is not None for event in self._opened)

    def work(self, amount: int) -> None:
        """Count work of one thread; instructions are twice the cycles."""
        self._total += amount

    def threads(self) -> Sequence[int]:
        return self._threads

    def open(self, event: CounterEvent, thread: int) -> int:
        code = self._refused.get(event.name)
        if code is not None:
            raise OSError(code, os.strerror(code))
        if thread < 0:
            raise ProcessLookupError
        self._opened.append(event)
        return len(self._opened) - 1

    def read(self, file: int) -> EventReading:
        event = self._opened[file]
        assert event is not None
        self._total += 10
        factor = 2 if event.name == "instructions" else 1
        return EventReading(int(self._total * factor * self._share), 1000, int(1000 * self._share))

    def close(self, file: int) -> None:
        assert self._opened[file] is not None
        self._opened[file] = None
