"""Clocks: where a measurement reads the time from."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Tells the time in nanoseconds from an arbitrary start; it never goes back."""

MONOTONIC_CLOCK: Clock = time.perf_counter_ns
"""The clock of this machine with the finest resolution."""


class FakeClock:
    """A clock that stands still until it is told to go on, so that tests decide how long everything takes.

    Args:
        now: The time it shows at first, in nanoseconds.
    """

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def __call__(self) -> int:
        """The time in nanoseconds."""
        return self.now

    def advance(self, nanoseconds: int) -> None:
        """Let time pass.

        Raises:
            ValueError: The duration is negative.
        """
        if nanoseconds < 0:
            raise ValueError(f"a clock cannot go back by {-nanoseconds} ns")
        self.now += nanoseconds

    def taking(self, cost: int | Callable[[], int]) -> Callable[[], None]:
        """A function that only takes `cost` nanoseconds on this clock: a number, or drawn at each call."""

        def function() -> None:
            self.advance(cost if isinstance(cost, int) else cost())

        return function
