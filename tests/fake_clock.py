"""A clock that tests set, instead of that of the machine."""

from __future__ import annotations

from collections.abc import Callable


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
