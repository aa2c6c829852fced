"""What a search knows from measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import Final

from intarsia.native.loop_state import LoopState

_CLEARLY: Final = 0.985
"""What takes less than this share of the time of another program is faster for sure, in turns with it."""


class MeasuredStates:
    """The programs of a task that were measured, and what they cost.

    Programs that print the same are the same. Failures are known as well, so that none is measured twice, but
    are no programs to go on from.

    Attributes:
        best_state: The one with the least cost; None while all failed.
        best_cost: Its cost in seconds; inf while all failed.
        best_trials: How many were known when the best was found.
    """

    def __init__(self, preferred: str | None = None) -> None:
        """Nothing known.

        Args:
            preferred: The text of the program that is the best among equals; else it is the first one.
        """
        self.best_state: LoopState | None = None
        self.best_cost = inf
        self.best_trials = 0
        self._preferred = preferred
        self._texts: set[str] = set()
        self._working: dict[str, tuple[float, LoopState]] = {}

    def __contains__(self, text: object) -> bool:
        """Whether the program with that text was measured."""
        return text in self._texts

    @property
    def trials(self) -> int:
        """How many programs were measured, failures included; one that was measured twice counts once."""
        return len(self._texts)

    def add(self, state: LoopState, cost: float) -> None:
        """Add a measurement; a cost that is no positive number is a failure.

        A cost of a program that was measured before takes the place of the old one.
        """
        is_known = state.text in self._texts
        self._texts.add(state.text)
        self._working.pop(state.text, None)
        if isfinite(cost) and cost > 0:
            self._working[state.text] = cost, state
        if is_known:
            self._choose(self._working.values())
        elif state.text in self._working:
            best = [] if self.best_state is None else [(self.best_cost, self.best_state)]
            self._choose([*best, (cost, state)])

    @property
    def texts(self) -> frozenset[str]:
        """Of all programs that were measured."""
        return frozenset(self._texts)

    def best(self, count: int) -> tuple[LoopState, ...]:
        """The programs that work with the least costs, best first."""
        ordered = sorted(self._working.values(), key=self._rank)
        return tuple(state for _, state in ordered[:count])

    def works(self, text: str) -> bool:
        """Whether the program with that text was measured, and did not fail."""
        return text in self._working

    def has_stalled(self, patience: int | None) -> bool:
        """Whether more than so many came after the best; never with None, or without a best."""
        if patience is None or self.best_state is None:
            return False
        return self.trials - self.best_trials > patience

    def settle(self, finalists: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Let the best be one of a few that were measured again, against one another.

        Their new costs take the place of the old ones; other programs, each of which may be there by one
        lucky measurement, do not count, unless all finalists failed this time. The preferred program, if it
        is one of them, is beaten only by what is clearly faster.
        """
        again = []
        for state, cost in zip(finalists, costs, strict=True):
            self._working.pop(state.text, None)
            if isfinite(cost) and cost > 0:
                self._working[state.text] = cost, state
                again.append((cost, state))
        held = next((cost for cost, state in again if state.text == self._preferred), inf)
        clear = [each for each in again if each[0] < _CLEARLY * held or each[1].text == self._preferred]
        self._choose(clear or self._working.values())

    def _choose(self, working: Iterable[tuple[float, LoopState]]) -> None:
        before = self.best_state
        found = min(working, key=self._rank, default=None)
        self.best_cost, self.best_state = (inf, None) if found is None else found
        if self.best_state is not None and self.best_state != before:
            self.best_trials = self.trials

    def _rank(self, each: tuple[float, LoopState]) -> tuple[float, bool]:
        cost, state = each
        return cost, state.text != self._preferred
