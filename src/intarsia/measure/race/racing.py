"""Racing: few repeats for the hopeless, more while the ranking of the leaders is undecided.

Candidates run in rounds, and those shown to be slower than the leader run no more. Only times of the same
round are compared, so that the drift of the machine cancels; only which of two is the lower counts, so that
outliers do no harm; and the tests may be looked at after every round (`sign_test`).

How the confidence is kept, if b is the best candidate and r the admitted risk:
* b is compared with whoever led before the round began. As b is the best, it loses such a round with at most
  probability 1/2, whoever led, so that one test holds for all leaders together. It gets r/4.
* The same with "slower by the hopeless ratio" and the share of disturbed repeats instead of 1/2 gets r/4.
* The race ends when the leader was no more than the margin above each other candidate. This counts from
  the round in which it first led; the j-th candidate to lead gets the share 1/(j(j+1)) of r/2.
So neither the number of candidates nor the number of looks makes the test weaker.
The plan is from O. Maron and A. Moore, Hoeffding Races, 1994, and E. Even-Dar, S. Mannor and Y. Mansour,
Action elimination and stopping conditions, 2006; the tests are our own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.measure.race.policy import DEFAULT_RACE, RacePolicy
from intarsia.measure.race.result import Dropped, DropReason, RacedCandidate, RaceEnd, RaceResult
from intarsia.measure.race.sign_test import needed_successes
from intarsia.measure.timing.interleaved import round_orders

Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]


def race(
    names: Sequence[str], sample: Callable[[str], float], policy: RacePolicy = DEFAULT_RACE
) -> RaceResult:
    """Run a race; what `sample` raises propagates.

    Args:
        names: The candidates.
        sample: Function that runs a candidate once and returns the seconds.
        policy: Policy of the race.

    Raises:
        ValueError: There is no candidate, a name occurs twice, or a sample is no positive finite number.
    """
    held = Race(names, policy)
    while (name := held.next_candidate()) is not None:
        held.record(name, sample(name))
    return held.result()


class Race:
    """A race with samples from outside: get the next candidate and record its time until the race is over.

    Args:
        names: The candidates.
        policy: Policy of the race.

    Raises:
        ValueError: There is no candidate, or a name occurs twice.
    """

    def __init__(self, names: Sequence[str], policy: RacePolicy = DEFAULT_RACE) -> None:
        if not names:
            raise ValueError("there is no candidate to race")
        if len(set(names)) < len(names):
            raise ValueError(f"two candidates of a race have one name: {sorted(names)}")
        count = len(names)
        self._names = tuple(names)
        self._policy = policy
        self._orders = round_orders(self._names, policy.seed)
        self._samples: tuple[list[float], ...] = tuple([] for _ in names)
        self._dropped: dict[int, Dropped] = {}
        self._table = np.zeros((count, 8))  # a row for each candidate, a column for each complete round
        self._rounds = 0
        self._row = np.zeros(count)
        self._pending: list[int] = []
        self._leader: int | None = None
        self._led_since: dict[int, int] = {}  # by candidate, in the order in which they first led
        self._compared = 0
        self._slower: Counts = np.zeros(count, np.int64)
        self._hopeless: Counts = np.zeros(count, np.int64)
        self._repeats, self._seconds = 0, 0.0
        self._end: RaceEnd | None = None
        self._begin_round()

    @property
    def is_over(self) -> bool:
        """Whether the race is decided, or its budget is spent."""
        return self._end is not None

    def next_candidate(self) -> str | None:
        """Return the next candidate, the same until it is recorded or withdrawn.

        None when the race is over.
        """
        return None if self.is_over else self._names[self._pending[-1]]

    def record(self, name: str, seconds: float) -> None:
        """Record the sample of the candidate that `next_candidate` returned.

        Raises:
            ValueError: It is another candidate's turn, or the seconds are no positive finite number.
        """
        if name != self.next_candidate():
            raise ValueError(f"{name!r} was recorded when the race expected {self.next_candidate()!r}")
        if not 0 < seconds < math.inf:
            raise ValueError(f"{name!r} took {seconds} seconds, expected a positive finite number")
        index = self._pending.pop()
        self._samples[index].append(seconds)
        self._row[index] = seconds
        self._repeats += 1
        self._seconds += seconds
        self._go_on()

    def withdraw(self, name: str) -> None:
        """Remove a candidate that failed.

        Raises:
            ValueError: It is not in the race, or no longer.
        """
        index = self._names.index(name) if name in self._names else -1
        if index < 0 or index in self._dropped or self.is_over:
            raise ValueError(f"{name!r} is not in the race")
        self._dropped[index] = Dropped(self._rounds + 1, DropReason.WITHDRAWN, 0, 0)
        if index in self._pending:
            self._pending.remove(index)
        if index == self._leader:
            self._leader = None
        self._go_on()

    @property
    def rounds(self) -> int:
        """Complete rounds so far."""
        return self._rounds

    def stop(self, end: RaceEnd = RaceEnd.STOPPED) -> None:
        """End the race where it stands; without effect if it is over."""
        self._end = self._end or end

    def result(self) -> RaceResult:
        """Return the result of the race.

        Raises:
            ValueError: The race is not over.
        """
        if self._end is None:
            raise ValueError(f"the race is not over: it waits for {self.next_candidate()!r}")
        candidates = tuple(
            RacedCandidate(name, tuple(samples), self._dropped.get(index))
            for index, (name, samples) in enumerate(zip(self._names, self._samples, strict=True))
        )
        winner = self._winner(candidates)
        return RaceResult(winner, self._end, candidates, self._rounds)

    def _winner(self, candidates: tuple[RacedCandidate, ...]) -> str | None:
        if not (left := self._left()):
            return None
        if self._rounds:
            return self._names[self._fastest(left)]
        sampled = [candidates[index] for index in left if candidates[index].samples]
        return min(sampled, key=lambda candidate: candidate.median).name if sampled else None

    def _left(self) -> list[int]:
        return [index for index in range(len(self._names)) if index not in self._dropped]

    def _begin_round(self) -> None:
        places = {name: index for index, name in enumerate(self._names)}
        order = [places[name] for name in next(self._orders)]
        self._pending = [index for index in reversed(order) if index not in self._dropped]

    def _go_on(self) -> None:
        """Evaluate a complete round, and end the race or begin the next round."""
        if not self._left():
            self._end = RaceEnd.NOBODY_LEFT
            return
        if not self._pending:
            self._complete_round()
        if self._end is None:
            self._end = self._spent()

    def _spent(self) -> RaceEnd | None:
        if self._rounds >= self._policy.max_rounds:
            return RaceEnd.ROUNDS_SPENT
        if self._repeats >= self._policy.max_repeats:
            return RaceEnd.REPEATS_SPENT
        return RaceEnd.SECONDS_SPENT if self._seconds >= self._policy.max_seconds else None

    def _complete_round(self) -> None:
        if self._rounds == self._table.shape[1]:
            self._table = np.concatenate((self._table, np.zeros_like(self._table)), axis=1)
        self._table[:, self._rounds] = self._row
        self._rounds += 1
        if self._leader is not None:
            self._compared += 1
            self._slower += self._row > self._row[self._leader]
            self._hopeless += self._row > self._policy.hopeless_ratio * self._row[self._leader]
        leader = self._fastest(self._left())
        if self._rounds >= self._policy.min_rounds:
            self._drop_losers(leader)
            self._end = self._decision(leader)
        self._led_since.setdefault(leader, self._rounds)
        self._leader = leader
        self._begin_round()

    def _fastest(self, left: list[int]) -> int:
        """Return the candidate with the lowest median; all have run in every round, so that drift cancels."""
        medians = np.median(self._table[left, : self._rounds], axis=1)
        return left[int(medians.argmin())]

    def _drop_losers(self, leader: int) -> None:
        risk = (1 - self._policy.confidence) / 4
        tests: tuple[tuple[DropReason, Counts, float], ...] = (
            (DropReason.HOPELESS, self._hopeless, self._policy.disturbed_share),
            (DropReason.SLOWER, self._slower, 0.5),
        )
        for reason, lost, chance in tests:
            needed = needed_successes(self._compared, chance, risk)
            for index in self._left():
                if lost[index] >= needed and index != leader:
                    self._dropped[index] = Dropped(self._rounds, reason, int(lost[index]), self._compared)

    def _decision(self, leader: int) -> RaceEnd | None:
        left = self._left()
        if left == [leader]:
            return RaceEnd.ONE_LEFT
        if leader not in self._led_since:
            return None
        since, rank = self._led_since[leader], list(self._led_since).index(leader) + 1
        times: npt.NDArray[Any] = self._table[left, since : self._rounds]
        close: Flags = self._table[leader, since : self._rounds] < (1 + self._policy.margin) * times
        risk = (1 - self._policy.confidence) / 2 / (rank * (rank + 1))
        needed = needed_successes(self._rounds - since, 0.5, risk)
        is_close = close.sum(axis=1) >= needed
        is_close[left.index(leader)] = True
        return RaceEnd.WITHIN_MARGIN if is_close.all() else None
