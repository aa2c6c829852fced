"""The end-to-end contest: single measurements of all candidates, then an interleaved race of the best."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.measure_progress import MeasureProgress
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.measurer import Measurer
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.race.result import RacedCandidate, RaceResult
from intarsia.measure.runner import Raced
from intarsia.measure.timing.interleaved import paired_ratio
from intarsia.measure.timing.timing import Timing
from intarsia.support.callbacks import silent
from intarsia.support.errors import StoppedError, UnsupportedModelError, VerificationError
from intarsia.tune.contest.candidate_record import STATUS_OF, CandidateRecord, Status
from intarsia.tune.contest.entrant import CandidateKey, Entrant

HOPELESS = 3.0
"""Ratio to the fastest latency above which a candidate does not race."""

FINAL = RacePolicy(margin=0.02, min_rounds=10, max_rounds=400)
"""Policy of the race: a difference of two percent counts as equal, which takes a few rounds to show; half a
percent takes ten times as many rounds where times vary by two percent."""

EXACT = RacePolicy(margin=0.005, min_rounds=20, max_rounds=400)
"""Policy of the race of a run that is to prove its result: a difference of half a percent counts as equal."""


@dataclass(slots=True)
class _Fate:
    """State of one entrant so far."""

    status: Status
    reason: str = ""
    result: MeasureResult | None = None


@dataclass(slots=True)
class Contest:
    """A contest of candidates for one model.

    Attributes:
        measurer: Measurer of candidates.
        should_stop: Function that returns true to end the contest where it stands.
        on_measured: Function that is called with the progress of single measurements.
        on_raced: Function that is called with the completed share of the race, from 0 to 1.
        random_text: Hint for a model that draws random numbers; "" if it draws none.
        sizes_text: Hint for a model that may need other sizes of its open dimensions; "" if it has none.
        policy: Policy of the race.
        entrants: Candidates so far.
        notes: Remarks on how the winner was found, in sentences.
    """

    measurer: Measurer
    should_stop: Callable[[], bool]
    on_measured: Callable[[MeasureProgress], object] = silent
    on_raced: Callable[[float], object] = silent
    random_text: str = ""
    sizes_text: str = ""
    policy: RacePolicy = FINAL
    entrants: list[Entrant] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _fates: dict[str, _Fate] = field(default_factory=dict)
    _race: RaceResult | None = None
    _turns: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    """Seconds of each entrant in the race by the sizes of symbolic dimensions, as text."""
    _winner: str = ""

    def enter_new(self, entrants: Sequence[Entrant]) -> None:
        """Let those candidates take part that do not yet, such as a plan that was found again."""
        taken = {entrant.key for entrant in self.entrants}
        new = [entrant for entrant in entrants if entrant.key not in taken]
        if new:
            self.enter(new)

    def enter(self, entrants: Sequence[Entrant]) -> None:
        """Add candidates, and measure each by itself.

        Args:
            entrants: Candidates with names that are different from all others.

        Raises:
            IntarsiaError: The reference cannot be computed, or measuring is impossible.
        """
        self.entrants += entrants
        able = [item for item in entrants if not item.refusal]
        for item in entrants:
            self._fates[item.name] = _Fate(item.status, item.refusal)
        results = self.measure([item.input for item in able], math.inf)
        for item, result in zip(able, results, strict=True):
            if result is None:
                self._fates[item.name] = _Fate(Status.NOT_MEASURED, "the budget was used up")
            else:
                self._fates[item.name] = _Fate(STATUS_OF[result.error], result.message, result)

    def measure(self, inputs: Sequence[MeasureInput], seconds: float) -> list[MeasureResult | None]:
        """Measure candidates that do not take part, such as those for one size of a dimension.

        Args:
            inputs: The candidates.
            seconds: Seconds of measuring after which no candidate is started.

        Returns:
            A result for each; None for those that were not measured.

        Raises:
            IntarsiaError: The reference cannot be computed, or measuring is impossible.
        """
        self.measurer.should_stop = self.should_stop
        self.measurer.on_progress = self.on_measured
        return self.measurer.measure(inputs, seconds=seconds)

    def results(self) -> dict[CandidateKey, MeasureResult]:
        """Return the single measurement or failure of each entrant, by `Entrant.key`."""
        pairs = ((item.key, self._fates[item.name].result) for item in self.entrants)
        return {key: result for key, result in pairs if result is not None}

    def decide(self, race_seconds: float, seed: int) -> Entrant:
        """Race the correct and fast entrants, and choose the winner.

        Args:
            race_seconds: Seconds for the race.
            seed: Random seed of the order in the race.

        Returns:
            The winner: the best of the race. Where no race has shown that a partition, a changed program or
            one with decisions on its kernels is faster than the best plain program, the latter wins, and
            `notes` has the reason. Of programs for several sizes, one that is faster at some size and slower
            at none wins.

        Raises:
            UnsupportedModelError: No candidate runs the model; the message says why for each.
            VerificationError: All candidates that run differ from the reference.
            StoppedError: `should_stop` returned true before any candidate was measured.
            IntarsiaError: Measuring is impossible.

        A candidate that fails in the race does not eliminate others: those that were excluded because of it
        race again.
        """
        finalists = self._finalists()
        if not finalists and self.should_stop():
            raise StoppedError(
                "stopped before any candidate was verified",
                help="measurements are stored in the database: run the same command again to continue",
            )
        while len(finalists) > 1 and not self.should_stop():
            raced = finalists
            self._run_race(raced, race_seconds, seed)
            finalists = self._finalists()
            if not self._is_unfair(raced, finalists):  # each repetition loses an entrant, so the loop ends
                break
            self._race = None
        if not finalists:
            raise self._failure_of_all()
        winner = self._prefer_plain(min(finalists, key=self._rank), finalists)
        winner = self._prefer_by_size(winner, finalists)
        self._winner = winner.name
        return winner

    def records(self) -> tuple[CandidateRecord, ...]:
        """Return records of all entrants: the winner, then the measured ones by latency, then the others."""
        records = [self._record(item) for item in self.entrants]
        return tuple(sorted(records, key=_order))

    def _finalists(self) -> list[Entrant]:
        """Return the correct entrants that are not far slower than the fastest correct one.

        Entrants that were far slower than one that has failed since are included again.
        """
        fates = self._fates
        right = [
            item
            for item in self.entrants
            # A candidate that was not tried has no result, and keeps its reason.
            if fates[item.name].status in {Status.MEASURED, Status.SLOW} and 0 <= self._cost(item) < math.inf
        ]
        fastest = min((self._cost(item) for item in right), default=math.inf)
        for item in right:
            ratio, fate = self._cost(item) / fastest, self._fates[item.name]
            text = f"it took {ratio:.1f} times as long as the fastest candidate"
            slow = replace(fate, status=Status.SLOW, reason=text)
            fair = replace(fate, status=Status.MEASURED, reason="")
            has_won = item.name == self._winner  # by a race: a single measurement does not rule it out
            self._fates[item.name] = slow if ratio > HOPELESS and not has_won else fair
        return self._measured(right)

    def _measured(self, entrants: Sequence[Entrant]) -> list[Entrant]:
        return [item for item in entrants if self._fates[item.name].status is Status.MEASURED]

    def _is_unfair(self, raced: Sequence[Entrant], finalists: Sequence[Entrant]) -> bool:
        """Whether a race must be repeated because a candidate that failed in or after it was leading.

        Args:
            raced: Entrants of the race.
            finalists: Correct and fast entrants after the race.
        """
        fallen = [item for item in raced if item not in self._measured(raced)]
        if not fallen:
            return False
        if self._race is None or any(item not in raced for item in finalists):
            return True
        samples = self._race.candidate
        best = min((samples(item.name).median for item in finalists), default=math.inf)
        has_led = any(samples(item.name).median < best for item in fallen)
        return has_led and any(samples(item.name).dropped is not None for item in finalists)

    def _run_race(self, finalists: Sequence[Entrant], seconds: float, seed: int) -> None:
        limits = RaceLimits(
            replace(self.policy, seed=seed), seconds, self.should_stop, partial(self._on_turn, seconds)
        )
        self.on_raced(0.0)
        raced = self.measurer.race({item.name: item.input for item in finalists}, limits)
        self._note_race(raced)
        self.on_raced(1.0)

    def _on_turn(self, most: float, rounds: int, seconds: float) -> None:
        # Without time left only the least rounds are run.
        share = seconds / most if most else 1.0
        self.on_raced(min(1.0, max(share, rounds / self.policy.max_rounds)))

    def _note_race(self, raced: Raced) -> None:
        self._race = raced.result
        self._turns = raced.by_size
        for name, outcome in raced.failures.items():
            fate = self._fates[name]
            after = "after many calls: " if outcome.error is MeasureError.WRONG_ANSWER else ""
            self._fates[name] = _Fate(STATUS_OF[outcome.error], after + outcome.message, fate.result)

    def _cost(self, item: Entrant) -> float:
        result = self._fates[item.name].result
        return math.inf if result is None else result.cost

    def _rank(self, item: Entrant) -> tuple[bool, float]:
        """Return the sort key of an entrant: finishers of the race first, by latency; else by cost."""
        samples = self._raced(item.name)
        if samples is None or not samples.samples:
            return self._race is not None, self._cost(item)
        return samples.dropped is not None, samples.median

    def _prefer_plain(self, winner: Entrant, finalists: Sequence[Entrant]) -> Entrant:
        """Return the best program without decisions unless the race has shown the winner to be faster."""
        without = [item for item in finalists if item.is_plain]
        if winner in without:
            return winner
        if not without:
            if self._race is None and len(finalists) > 1:
                self.notes.append(
                    f"{winner.name} was chosen by single measurements: no race has confirmed it"
                )
            return winner
        plain = min(without, key=self._rank)
        if self._race is None or not self._have_raced(plain, winner):
            # Single measurements at different times differ by noise alone, and the least of many is biased.
            self.notes.append(
                f"{winner.name} took less time than {plain.name} in single measurements, "
                "but no race has confirmed it: the plain program was chosen"
            )
            return plain
        # The interval of the ratio is only meaningful if both ran to the end of the race.
        stayed = {plain.name, winner.name} <= set(self._race.left)
        return plain if stayed and self._race.ratio(plain.name, winner.name).low <= 1.0 else winner

    def _prefer_by_size(self, winner: Entrant, finalists: Sequence[Entrant]) -> Entrant:
        """Return an entrant that the race has shown to be faster at some size, and slower at none.

        Large sizes outweigh small ones in the mean: a gain at a small size does not show there.
        """
        if self._race is None:
            return winner
        better = [
            item
            for item in finalists
            if item.name in self._race.left and item is not winner and self._is_faster_by_size(item, winner)
        ]
        return min(better, key=self._rank, default=winner)

    def _is_faster_by_size(self, item: Entrant, other: Entrant) -> bool:
        times, others = (self._turns.get(entrant.name, {}) for entrant in (item, other))
        ratios = [paired_ratio(others[sizes], times[sizes]) for sizes in times if sizes in others]
        return any(ratio.low > 1.0 for ratio in ratios) and all(ratio.high >= 1.0 for ratio in ratios)

    def _have_raced(self, *entrants: Entrant) -> bool:
        """Whether all of some entrants were timed in the race."""
        raced = (self._raced(item.name) for item in entrants)
        return all(candidate is not None and candidate.samples for candidate in raced)

    def _raced(self, name: str) -> RacedCandidate | None:
        """Return an entrant of the last race; None for one that entered the contest after it."""
        candidates = () if self._race is None else self._race.candidates
        return next((candidate for candidate in candidates if candidate.name == name), None)

    def _failure_of_all(self) -> VerificationError | UnsupportedModelError:
        fates = "; ".join(
            f"{item.name}: {self._fates[item.name].status.value}: {self._fates[item.name].reason}"
            for item in self.entrants
        )
        message = f"no candidate computes the model right: {fates}"
        if not any(fate.status is Status.WRONG for fate in self._fates.values()):
            return UnsupportedModelError(message, help=self.sizes_text)
        hints = filter(None, (self.random_text, self.sizes_text))
        return VerificationError(message, help="; ".join(hints))

    def _record(self, item: Entrant) -> CandidateRecord:
        fate = self._fates[item.name]
        timing = ratio = None
        if fate.result is not None and fate.result.is_ok:
            timing = Timing(fate.result.costs, len(fate.result.costs))
        raced, winner = self._raced(item.name), self._raced(self._winner)
        samples = () if raced is None else raced.samples
        if samples and winner is not None and winner.samples and self._race is not None:
            timing = Timing(samples, len(samples))
            ratio = self._race.ratio(item.name, self._winner)
        return CandidateRecord(
            name=item.name,
            target=str(item.input.target),
            status=fate.status,
            reason=fate.reason,
            measure_seconds=None if fate.result is None else fate.result.wall_seconds,
            max_error=None if fate.result is None else fate.result.max_error,
            errors=() if fate.result is None else fate.result.errors,
            timing=timing,
            ratio=ratio,
            chosen=item.name == self._winner,
            is_whole=item.input.candidate.kind == WHOLE.kind,
            by_size=tuple(
                (sizes, statistics.median(seconds))
                for sizes, seconds in self._turns.get(item.name, {}).items()
            ),
        )


def _order(record: CandidateRecord) -> tuple[bool, bool, float]:
    is_measured = record.status in {Status.MEASURED, Status.SLOW}
    return not record.chosen, not is_measured, record.timing.median if record.timing else math.inf
