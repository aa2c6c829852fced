"""The policy of a race: equivalence margin, required confidence, cost limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class RacePolicy:
    """The policy of a race.

    Attributes:
        margin: Candidates this close (0.02: 2 %) count as equal.
        confidence: Least probability that a decided race's winner is within the margin of the best.
        hopeless_ratio: A candidate this many times slower than the leader is hopeless, which few repeats
            show, provided that
        disturbed_share: at most this share of a candidate's repeats is disturbed as badly as that.
        min_rounds: Repeats of every candidate, whatever they show.
        max_rounds: Repeats of one candidate.
        max_repeats: Repeats of all candidates together.
        max_seconds: No repeat begins after the samples add up to this many seconds.
        seed: Seed of the order in which the candidates run.

    Raises:
        UsageError: A number that makes no sense.
    """

    margin: float = 0.02
    confidence: float = 0.95
    hopeless_ratio: float = 1.5
    disturbed_share: float = 0.1
    min_rounds: int = 3
    max_rounds: int = 100
    max_repeats: int = 100_000
    max_seconds: float = math.inf
    seed: int = 0

    def __post_init__(self) -> None:
        self._expect("margin", 0 <= self.margin < math.inf, "a finite number of at least 0")
        self._expect("confidence", 0 < self.confidence < 1, "a number between 0 and 1")
        self._expect("hopeless_ratio", self.hopeless_ratio > 1, "a number above 1")
        self._expect("disturbed_share", 0 < self.disturbed_share < 1, "a number between 0 and 1")
        self._expect("min_rounds", self.min_rounds >= 1, "at least 1")
        self._expect(
            "max_rounds", self.max_rounds >= self.min_rounds, f"at least min_rounds = {self.min_rounds}"
        )
        self._expect("max_repeats", self.max_repeats >= 1, "at least 1")
        self._expect("max_seconds", self.max_seconds > 0, "a number above 0")

    def _expect(self, field: str, is_met: bool, expected: str) -> None:
        if not is_met:
            raise UsageError(f"the race policy has {field} = {getattr(self, field)}, expected {expected}")


DEFAULT_RACE = RacePolicy()
