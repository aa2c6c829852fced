"""How many calls of a small program a stream runs in a series, while others wait."""

from __future__ import annotations

from math import inf
from typing import Final

_MOST_SECONDS: Final = 100e-6
"""Time of a series in seconds: as long, at most, as a result waits for those of the calls behind it."""
_MOST_CALLS: Final = 8


class SeriesLength:
    """The number of calls of a series, from the times of earlier calls of the same program.

    Attributes:
        calls: Number of calls up to which the next series may have; 1 until a time is known.
    """

    __slots__ = ("_shortest", "calls")

    def __init__(self) -> None:
        self._shortest = inf
        self.calls = 1

    def note(self, calls: int, seconds: float) -> None:
        """Learn from calls that ran one after the other in so many seconds.

        The shortest time counts: longer ones had to wait for other threads.
        """
        if seconds < self._shortest * calls:
            self._shortest = seconds / calls
            self.calls = max(1, min(_MOST_CALLS, int(_MOST_SECONDS / max(self._shortest, 1e-9))))
