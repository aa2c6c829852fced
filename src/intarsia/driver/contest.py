"""The end-to-end contest: each candidate for the whole model by itself, then the fast ones in turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from intarsia.driver.entrant import Entrant
from intarsia.driver.records import STATUS_OF, CandidateRecord, Progress, Stage, Status
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.measurer import MeasureBudget, Measurer
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.race.result import RaceResult
from intarsia.measure.runner import Raced
from intarsia.measure.timing.timing import Timing
from intarsia.support.errors import StoppedError, UnsupportedModelError, VerificationError

HOPELESS = 3.0
"""A candidate that takes this many times as long as the fastest one does not race."""

FINAL = RacePolicy(margin=0.005, min_rounds=20, max_rounds=400)
"""How the race is held: what is within half a percent counts as equal."""


@dataclass(slots=True)
class _Fate:
    """What is known of one entrant so far."""

    status: Status
    reason: str = ""
    result: MeasureResult | None = None


@dataclass(slots=True)
class Contest:
    """A contest of candidates for one model.

    Attributes:
        measurer: Measures them.
        report: Told what is being done.
        should_stop: A yes ends the contest where it stands.
        random_text: What to say of a model that draws random numbers; "" if it draws none.
        entrants: Who takes part so far.
    """

    measurer: Measurer
    report: Callable[[Progress], object]
    should_stop: Callable[[], bool]
    random_text: str = ""
    entrants: list[Entrant] = field(default_factory=list)
    _fates: dict[str, _Fate] = field(default_factory=dict)
    _race: RaceResult | None = None
    _winner: str = ""

    def enter_new(self, entrants: Sequence[Entrant]) -> None:
        """Let those candidates take part that do not yet, such as a plan that was found again."""
        taken = {entrant.key for entrant in self.entrants}
        new = [entrant for entrant in entrants if entrant.key not in taken]
        if new:
            self.enter(new, MeasureBudget())

    def enter(self, entrants: Sequence[Entrant], budget: MeasureBudget) -> None:
        """Let candidates take part, and measure each by itself.

        Args:
            entrants: Their names are different from all others.
            budget: For measuring them.

        Raises:
            IntarsiaError: The reference cannot be computed, or measuring is impossible.
        """
        self.entrants += entrants
        able = [item for item in entrants if not item.refusal]
        for item in entrants:
            self._fates[item.name] = _Fate(item.status, item.refusal)
        self.measurer.should_stop = self.should_stop
        self.measurer.on_progress = lambda progress: self.report(
            Progress(Stage.MEASURE, progress.done / max(1, progress.total), progress)
        )
        results = self.measurer.measure([item.input for item in able], budget)
        for item, result in zip(able, results, strict=True):
            if result is None:
                self._fates[item.name] = _Fate(Status.NOT_MEASURED, "the budget was used up")
            else:
                self._fates[item.name] = _Fate(STATUS_OF[result.error], result.message, result)

    def results(self) -> dict[tuple[str, str], MeasureResult]:
        """What each entrant took by itself, or how it failed, by `Entrant.key`."""
        found = ((item.key, self._fates[item.name].result) for item in self.entrants)
        return {key: result for key, result in found if result is not None}

    def decide(self, race_seconds: float, seed: int) -> Entrant:
        """Race the entrants that are right and fast.

        Args:
            race_seconds: For the race.
            seed: Of the order in the race.

        Returns:
            The winner: the best of the race, or the best by itself if there was no time for one. Where the
            race does not tell a mix from the best toolchain that runs the whole, that toolchain wins.

        Raises:
            UnsupportedModelError: No candidate runs the model; the message says why for each.
            VerificationError: Those that run it compute something else than the reference.
            StoppedError: There was a wish to stop before any candidate was measured.
            IntarsiaError: Measuring is impossible.

        A candidate that falls in the race takes nobody with it: whoever was hopeless or slower beside it
        comes back, and races again.
        """
        finalists = self._finalists()
        if not finalists and self.should_stop():
            raise StoppedError(
                "stopped before a candidate was found right",
                help="what has been measured is kept: run the same command again to go on",
            )
        while len(finalists) > 1 and not self.should_stop():
            raced = finalists
            self._hold_race(raced, race_seconds, seed)
            finalists = self._finalists()
            if not self._is_unfair(raced, finalists):  # else one more has fallen: this ends
                break
            self._race = None
        if not finalists:
            raise self._nothing_right()
        winner = self._plainer(min(finalists, key=self._rank), finalists)
        self._winner = winner.name
        return winner

    def records(self) -> tuple[CandidateRecord, ...]:
        """All entrants: the winner, then the measured ones by latency, then the others."""
        records = [self._record(item) for item in self.entrants]
        return tuple(sorted(records, key=_order))

    def _finalists(self) -> list[Entrant]:
        """The entrants that are right and not hopeless beside the fastest that is right so far.

        Who was hopeless beside one that has fallen since comes back.
        """
        fates = self._fates
        right = [
            item
            for item in self.entrants
            # A candidate that was not tried has no result, and keeps its reason.
            if fates[item.name].status in {Status.MEASURED, Status.SLOW}
            and fates[item.name].result is not None
        ]
        fastest = min((self._cost(item) for item in right), default=math.inf)
        for item in right:
            ratio, fate = self._cost(item) / fastest, self._fates[item.name]
            text = f"it took {ratio:.1f} times as long as the fastest candidate"
            slow = replace(fate, status=Status.SLOW, reason=text)
            fair = replace(fate, status=Status.MEASURED, reason="")
            self._fates[item.name] = slow if ratio > HOPELESS else fair
        return self._right(right)

    def _right(self, entrants: Sequence[Entrant]) -> list[Entrant]:
        return [item for item in entrants if self._fates[item.name].status is Status.MEASURED]

    def _is_unfair(self, raced: Sequence[Entrant], finalists: Sequence[Entrant]) -> bool:
        """Whether a race says too little, because a candidate that fell in it or after it led it.

        Args:
            raced: Entrants of the race.
            finalists: Those that are right after it, and not hopeless beside each other.
        """
        fallen = [item for item in raced if item not in self._right(raced)]
        if not fallen:
            return False
        if self._race is None or any(item not in raced for item in finalists):
            return True
        samples = self._race.candidate
        best = min((samples(item.name).median for item in finalists), default=math.inf)
        has_led = any(samples(item.name).median < best for item in fallen)
        return has_led and any(samples(item.name).dropped is not None for item in finalists)

    def _hold_race(self, finalists: Sequence[Entrant], seconds: float, seed: int) -> None:
        limits = RaceLimits(
            replace(FINAL, seed=seed), seconds, self.should_stop, partial(self._on_turn, seconds)
        )
        self.report(Progress(Stage.RACE))
        raced = self.measurer.race({item.name: item.input for item in finalists}, limits)
        self._note_race(raced)
        self.report(Progress(Stage.RACE, 1.0))

    def _on_turn(self, most: float, rounds: int, seconds: float) -> None:
        share = max(seconds / most, rounds / FINAL.max_rounds)
        self.report(Progress(Stage.RACE, min(1.0, share)))

    def _note_race(self, raced: Raced) -> None:
        self._race = raced.result
        for name, outcome in raced.failures.items():
            fate = self._fates[name]
            after = "after many calls: " if outcome.error is MeasureError.WRONG_ANSWER else ""
            self._fates[name] = _Fate(STATUS_OF[outcome.error], after + outcome.message, fate.result)

    def _cost(self, item: Entrant) -> float:
        result = self._fates[item.name].result
        return math.inf if result is None else result.cost

    def _rank(self, item: Entrant) -> tuple[bool, float]:
        """Who stayed to the end of the race before who dropped out; else by the single measurement."""
        samples = None if self._race is None else self._race.candidate(item.name)
        if samples is None or not samples.samples:
            return self._race is not None, self._cost(item)
        return samples.dropped is not None, samples.median

    def _plainer(self, winner: Entrant, finalists: Sequence[Entrant]) -> Entrant:
        """The best toolchain for all, if the winner is a mix that the race has not shown to be faster."""
        wholes = [item for item in finalists if item.input.candidate.kind == WHOLE.kind]
        if self._race is None or winner in wholes or not wholes:
            return winner
        plain = min(wholes, key=self._rank)
        stayed = {plain.name, winner.name} <= set(self._race.left)
        return plain if stayed and self._race.ratio(plain.name, winner.name).low <= 1.0 else winner

    def _nothing_right(self) -> VerificationError | UnsupportedModelError:
        fates = "; ".join(
            f"{item.name}: {self._fates[item.name].status.value}: {self._fates[item.name].reason}"
            for item in self.entrants
        )
        message = f"no candidate computes the model right: {fates}"
        if not any(fate.status is Status.WRONG for fate in self._fates.values()):
            return UnsupportedModelError(message)
        return VerificationError(message, help=self.random_text)

    def _record(self, item: Entrant) -> CandidateRecord:
        fate, is_raced = self._fates[item.name], False
        timing = ratio = None
        if fate.result is not None and fate.result.is_ok:
            timing = Timing(fate.result.costs, len(fate.result.costs))
        if self._race is not None and item.name in {each.name for each in self._race.candidates}:
            samples = self._race.candidate(item.name).samples
            is_raced = bool(samples) and bool(self._race.candidate(self._winner).samples)
        if is_raced and self._race is not None:
            timing = Timing(samples, len(samples))
            ratio = self._race.ratio(item.name, self._winner)
        return CandidateRecord(
            name=item.name,
            target=str(item.input.target),
            status=fate.status,
            reason=fate.reason,
            measure_seconds=None if fate.result is None else fate.result.wall_seconds,
            max_error=None if fate.result is None else fate.result.max_error,
            timing=timing,
            ratio=ratio,
            chosen=item.name == self._winner,
            is_whole=item.input.candidate.kind == WHOLE.kind,
        )


def _order(record: CandidateRecord) -> tuple[bool, bool, float]:
    is_measured = record.status in {Status.MEASURED, Status.SLOW}
    return not record.chosen, not is_measured, record.timing.median if record.timing else math.inf
