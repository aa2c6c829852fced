"""The result of a race: the winner, all samples, and the dropouts with their rounds and reasons."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from enum import StrEnum

from intarsia.measure.timing.interleaved import RatioInterval, paired_ratio
from intarsia.measure.timing.median_interval import median_interval


class RaceEnd(StrEnum):
    """Why a race ended."""

    ONE_LEFT = "one left"
    WITHIN_MARGIN = "the others are not better by more than the margin"
    ROUNDS_SPENT = "rounds spent"
    REPEATS_SPENT = "repeats spent"
    SECONDS_SPENT = "seconds spent"
    NOBODY_LEFT = "nobody left"
    STOPPED = "stopped"

    @property
    def is_decision(self) -> bool:
        """Whether the winner is proven, and not only the best guess at the end of the budget."""
        return self in {RaceEnd.ONE_LEFT, RaceEnd.WITHIN_MARGIN}

    @property
    def is_final(self) -> bool:
        """Whether the same race with more time would have ended the same."""
        return self not in {RaceEnd.SECONDS_SPENT, RaceEnd.STOPPED}


class DropReason(StrEnum):
    """Why a candidate left the race."""

    SLOWER = "slower"
    HOPELESS = "hopeless"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Dropped:
    """The dropout of a candidate from the race.

    Attributes:
        round: The round after (withdrawn: in) which it left, from 1.
        reason: Reason of the dropout.
        lost: Rounds in which it was slower (hopeless: slower by the hopeless ratio) than the leader.
        of: Number of rounds in which they were compared.
    """

    round: int
    reason: DropReason
    lost: int
    of: int

    def __str__(self) -> str:
        """In words: "hopeless after round 4: lost 3 of 3"."""
        if self.reason is DropReason.WITHDRAWN:
            return f"withdrawn in round {self.round}"
        return f"{self.reason} after round {self.round}: lost {self.lost} of {self.of}"


@dataclass(frozen=True, slots=True)
class RacedCandidate:
    """One candidate of a race.

    Attributes:
        name: Its name.
        samples: Seconds, a number a repetition, in the order they were taken.
        dropped: Dropout from the race; None if it stayed to the end.
    """

    name: str
    samples: tuple[float, ...]
    dropped: Dropped | None

    @property
    def median(self) -> float:
        """Seconds; infinite if it was never sampled."""
        return statistics.median(self.samples) if self.samples else math.inf

    @property
    def low(self) -> float:
        """Lower end of the 95 % confidence interval of the median, in seconds; 0 below six samples."""
        return max(0.0, median_interval(self.samples)[0])

    @property
    def high(self) -> float:
        """Upper end of the 95 % confidence interval of the median, in seconds; infinite below six samples."""
        return median_interval(self.samples)[1]


@dataclass(frozen=True, slots=True)
class RaceResult:
    """The result of a race.

    Attributes:
        winner: Name of the candidate with the lowest median among those left; None without a sample.
        end: Reason of the end.
        candidates: All of them, in the order given.
        rounds: Complete rounds.
    """

    winner: str | None
    end: RaceEnd
    candidates: tuple[RacedCandidate, ...]
    rounds: int

    @property
    def repeats(self) -> int:
        """Samples of all candidates together."""
        return sum(len(candidate.samples) for candidate in self.candidates)

    @property
    def left(self) -> tuple[str, ...]:
        """Names of the candidates that stayed to the end."""
        return tuple(candidate.name for candidate in self.candidates if candidate.dropped is None)

    def ratio(self, name: str, other: str) -> RatioInterval:
        """Return the ratio of the times of `name` and `other`, from the rounds that both have run.

        Raises:
            KeyError: One of them was not in the race.
            ValueError: They have no round in common.
        """
        return paired_ratio(self.candidate(name).samples, self.candidate(other).samples)

    def candidate(self, name: str) -> RacedCandidate:
        """Return the candidate with this name.

        Raises:
            KeyError: There is none.
        """
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        raise KeyError(name)
