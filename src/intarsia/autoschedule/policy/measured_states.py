"""The measured programs of a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import Final

from intarsia.native.loop_state import LoopState

_CLEARLY: Final = 0.985
"""A finalist is clearly faster below this share of another one's time, measured interleaved."""


class MeasuredStates:
    """Measured programs of a task, with their costs.

    Programs with equal texts are equal. Failures are stored too, so that none is measured twice, but
    they are not candidates for the best.

    Attributes:
        best_state: Program with the least cost; None while all failed.
        best_cost: Cost of the best program in seconds; inf while all failed.
        best_trials: Number of measured programs when the best was found.
    """

    def __init__(self, preferred: str | None = None) -> None:
        """Create an empty collection.

        Args:
            preferred: Text of the program that is the best among equals; None for the first one measured.
        """
        self.best_state: LoopState | None = None
        self.best_cost = inf
        self.best_trials = 0
        self._preferred = preferred
        self._texts: set[str] = set()
        self._superseded: set[str] = set()
        self._working: dict[str, tuple[float, LoopState]] = {}

    def __contains__(self, text: object) -> bool:
        """Whether the program with that text was measured."""
        return text in self._texts

    @property
    def trials(self) -> int:
        """Number of distinct measured programs, including failures."""
        return len(self._texts)

    def add(self, state: LoopState, cost: float) -> None:
        """Add a measurement; a cost that is not a positive number is a failure.

        A second cost of a program replaces the first one. After a confirmation its winner stays the best
        until a program that is added later is faster.
        """
        is_known = state.text in self._texts
        self._superseded.discard(state.text)
        self._texts.add(state.text)
        self._working.pop(state.text, None)
        if isfinite(cost) and cost > 0:
            self._working[state.text] = cost, state
        if is_known:
            self._choose(self._candidates())
        elif state.text in self._working:
            best = [] if self.best_state is None else [(self.best_cost, self.best_state)]
            # A new program can only improve the best, so that no scan of all programs is needed.
            self._choose([*best, (cost, state)])

    @property
    def texts(self) -> frozenset[str]:
        """Texts of all measured programs."""
        return frozenset(self._texts)

    def best(self, count: int, ratio: float = inf) -> tuple[LoopState, ...]:
        """Return the working programs with the least costs, best first.

        Args:
            count: Maximum number of programs.
            ratio: Maximum ratio of their costs to the least one.
        """
        ordered = sorted(self._working.values(), key=self._rank)[:count]
        return tuple(state for cost, state in ordered if cost <= ratio * ordered[0][0])

    def works(self, text: str) -> bool:
        """Return whether the program with that text was measured without a failure."""
        return text in self._working

    def has_stalled(self, patience: int | None) -> bool:
        """Whether more than `patience` programs were measured after the best; false for None or no best."""
        if patience is None or self.best_state is None:
            return False
        return self.trials - self.best_trials > patience

    def confirm(self, finalists: Sequence[LoopState], costs: Sequence[float]) -> None:
        """Choose the best among finalists that were measured again, interleaved.

        Their new costs replace the old ones. Other programs, each of which may owe its rank to one
        lucky measurement, do not count unless all finalists failed this time. The preferred program, if it
        is a finalist, is replaced only by a clearly faster one.
        """
        remeasured = []
        for state, cost in zip(finalists, costs, strict=True):
            self._working.pop(state.text, None)
            if isfinite(cost) and cost > 0:
                self._working[state.text] = cost, state
                remeasured.append((cost, state))
        preferred_cost = next((cost for cost, state in remeasured if state.text == self._preferred), inf)
        clear = [
            timed
            for timed in remeasured
            if timed[0] < _CLEARLY * preferred_cost or timed[1].text == self._preferred
        ]
        if not clear:
            self._superseded.clear()
            self._choose(self._working.values())
            return
        self._choose(clear)
        self._supersede_others()

    def select_confirmed(self, state: LoopState) -> None:
        """Choose a program that won a confirmation with its last cost, whatever was measured before."""
        if state.text in self._working:
            self._choose([self._working[state.text]])
            self._supersede_others()

    def _supersede_others(self) -> None:
        assert self.best_state is not None
        self._superseded = self._texts - {self.best_state.text}

    def _candidates(self) -> Iterable[tuple[float, LoopState]]:
        """Return the working programs that can be the best: from the last confirmation on, if any works."""
        newest = [timed for text, timed in self._working.items() if text not in self._superseded]
        return newest or self._working.values()

    def _choose(self, working: Iterable[tuple[float, LoopState]]) -> None:
        before = self.best_state
        best = min(working, key=self._rank, default=None)
        self.best_cost, self.best_state = (inf, None) if best is None else best
        if self.best_state is not None and self.best_state != before:
            self.best_trials = self.trials

    def _rank(self, timed: tuple[float, LoopState]) -> tuple[float, bool]:
        cost, state = timed
        return cost, state.text != self._preferred
