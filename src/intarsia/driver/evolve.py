"""The second level of the search: placements evolved by what the whole model takes with them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from intarsia.collage.collage import CollageResult
from intarsia.collage.conflicts import declared_conflicts
from intarsia.collage.evolution.evolve_placements import evolve
from intarsia.collage.evolution.placement_space import PlacementSpace
from intarsia.collage.placement.placement import Placement
from intarsia.driver.contest import Contest
from intarsia.driver.entrant import CandidateKey, candidate_key
from intarsia.driver.records import Progress, TuneStage
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureResult
from intarsia.measure.measurer import MeasureProgress, Measurer
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET

FINALISTS: Final = 2
"""So many new placements enter the contest at most."""

_CLOSE: Final = 1.1
"""A placement that took this many times as long as the best is left out: one measurement tells that."""

_BATCH: Final = 4
"""Placements that are built before the time is looked at; builds run beside each other."""


def evolved_placements(
    contest: Contest,
    workload: Workload,
    found: CollageResult,
    seconds: float,
    seed: int,
    seeds: Sequence[Placement] = (),
) -> list[Placement]:
    """The best placements that an evolution adds to what a contest has.

    Args:
        contest: Knows what its entrants took.
        workload: The program.
        found: What the search of covers has found: where evolution begins.
        seconds: Time for measuring.
        seed: Of the evolution.
        seeds: Further placements to begin with.

    Raises:
        IntarsiaError: Measuring is impossible.
    """
    space = PlacementSpace.of(found, declared_conflicts())
    if space is None:
        return []
    known = contest.results()
    fitness = MeasuredFitness(contest.measurer, workload, space, seconds, known)

    def tell(progress: MeasureProgress) -> None:
        contest.report(Progress(TuneStage.SEARCH, min(1.0, fitness.spent / seconds), progress))

    contest.measurer.on_progress = tell
    begin = [*(record.placement for record in found.placements), *seeds]
    evolved = evolve(space, begin, fitness, Random(seed), should_stop=contest.should_stop)  # noqa: S311 - no secret
    right = [result.cost for result in known.values() if result.is_ok]
    best = min([*right, *(each.seconds for each in evolved.best)], default=math.inf)
    new = [
        each.placement
        for each in evolved.best
        if each.seconds <= _CLOSE * best and candidate_key(fitness.input(each.placement)) not in known
    ]
    return new[:FINALISTS]


@dataclass(eq=False)
class MeasuredFitness:
    """Tells what the whole program takes with a placement, by measuring it.

    Attributes:
        measurer: Measures, and knows the database.
        workload: The program.
        space: Of the placements.
        seconds: Time for measuring.
        known: Results that cost nothing here: those of the contest, by `candidate_key`.
    """

    measurer: Measurer
    workload: Workload
    space: PlacementSpace
    seconds: float
    known: Mapping[CandidateKey, MeasureResult]
    _begun: float = field(init=False)
    _found: dict[CandidateKey, MeasureResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._begun = self.measurer.spent

    @property
    def spent(self) -> float:
        """Seconds that measuring has taken."""
        return self.measurer.spent - self._begun

    def __call__(self, placements: Sequence[Placement]) -> list[float | None]:
        """Seconds of each placement; infinite for a failure, None where the time was over."""
        inputs = [self.input(each) for each in placements]
        distinct = {candidate_key(item): item for item in inputs}
        waiting = [item for key, item in distinct.items() if self._result(key) is None]
        while waiting:
            batch = waiting[: self._room()]
            waiting = waiting[len(batch) :]
            if not batch or not self._measure(batch):
                break
        results = [self._result(candidate_key(item)) for item in inputs]
        return [None if result is None else result.cost for result in results]

    def input(self, placement: Placement) -> MeasureInput:
        """What is measured: a toolchain that runs everything is measured as such."""
        if self.space.is_whole(placement):
            return MeasureInput(self.workload, Target.parse(placement.partitions[0].target), WHOLE)
        return MeasureInput(self.workload, REFERENCE_TARGET, placement.candidate)

    def _result(self, key: CandidateKey) -> MeasureResult | None:
        return self.known.get(key, self._found.get(key))

    def _measure(self, batch: Sequence[MeasureInput]) -> bool:
        """Whether all of it has been measured."""
        results = self.measurer.measure(batch)
        for item, result in zip(batch, results, strict=True):
            if result is not None:
                self._found[candidate_key(item)] = result
        return None not in results

    def _room(self) -> int:
        """How many placements there is time for; it depends on nothing but what was measured before."""
        paces = [each.wall_seconds for each in (self._found or self.known).values()]
        pace = statistics.fmean(paces) if paces else 1.0
        return min(_BATCH, int((self.seconds - self.spent) / max(pace, 1e-3)))
