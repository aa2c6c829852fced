"""Searching partitions of a model for the contest, with costs measured on this host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intarsia.collage.collage import CollageResult
from intarsia.collage.costs.boundary_costs import BoundaryCosts
from intarsia.collage.placement.placement import Placement
from intarsia.collage.search_placements import LEAST_SEARCH, mixed_placements, search_placements
from intarsia.driver.contest import Contest
from intarsia.driver.entrant import Entrant
from intarsia.driver.evolve import evolved_placements
from intarsia.driver.records import Progress, TuneStage
from intarsia.measure.measure_input import Candidate, MeasureInput, Workload
from intarsia.measure.measurer import MeasureProgress, Measurer
from intarsia.support.free_names import free_name
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET

LEAST_SECONDS = LEAST_SEARCH
"""With less time there is no search."""

EVOLUTION_SHARE = 1 / 3
"""Share of the search's time for evolving what the covers by measured sums have given, end to end."""

"""What runs the expressions of a placed program that are in no partition: tuples and projections."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchedPartitions:
    """What the search by measured sums has found, and with which border costs."""

    found: CollageResult
    boundaries: BoundaryCosts

    def predicted_seconds(self, candidate: Candidate) -> float | None:
        """The sum that a candidate was found by; None if it was not found so."""
        records = {each.placement.candidate.digest: each.seconds for each in self.found.placements}
        return records.get(candidate.digest)


def enter_partitions(
    contest: Contest,
    workload: Workload,
    targets: Sequence[Target],
    seconds: float,
    seed: int,
    seeds: Sequence[Placement] = (),
) -> SearchedPartitions:
    """Search partitions on both levels, and let the best ones take part in a contest.

    The first level adds up the costs of parts, the second one evolves its covers by what the whole takes.

    Args:
        contest: Each toolchain alone has taken part already.
        workload: The program, with its inputs.
        targets: Who may run parts of it.
        seconds: Time for measuring.
        seed: Of the evolution.
        seeds: Placements that are known to be good.

    Returns:
        What the first level has found.

    Raises:
        UnsupportedModelError: Nobody runs some expression.
        IntarsiaError: Measuring is impossible.
    """
    share = seconds * EVOLUTION_SHARE
    found, boundaries = search_partitions(
        contest.measurer, workload, targets, seconds - share, contest.report
    )
    contest.enter_new(placement_entrants(workload, found, _names(contest)))
    if not contest.should_stop():
        evolved = evolved_placements(contest, workload, found, share, seed, seeds)
        contest.enter_new(_entrants(workload, evolved, _names(contest)))
    return SearchedPartitions(found, boundaries)


def search_partitions(
    measurer: Measurer,
    workload: Workload,
    targets: Sequence[Target],
    seconds: float,
    report: Callable[[Progress], object],
) -> tuple[CollageResult, BoundaryCosts]:
    """Find the cheapest partitions of a workload's program.

    Args:
        measurer: Measures, and knows what was measured before.
        workload: The program, with its inputs.
        targets: Who may run parts of it.
        seconds: Time for measuring.
        report: Told how far it has come.

    Raises:
        UnsupportedModelError: Nobody runs some expression.
        IntarsiaError: Measuring is impossible.
    """
    begun = measurer.spent

    def tell(progress: MeasureProgress) -> None:
        fraction = min(1.0, (measurer.spent - begun) / seconds)
        report(Progress(TuneStage.SEARCH, fraction, progress))

    measurer.on_progress = tell
    report(Progress(TuneStage.SEARCH))
    return search_placements(measurer, workload, targets, seconds)


def placement_entrants(workload: Workload, found: CollageResult, taken: Sequence[str] = ()) -> list[Entrant]:
    """The placements as candidates for the whole model, but for those that one toolchain runs as a whole."""
    return _entrants(workload, mixed_placements(workload.module, found), taken)


def placement_entrant(workload: Workload, placement: Placement, taken: Sequence[str]) -> Entrant:
    """A placement as a candidate for the whole model, under a name that is not taken."""
    name = free_name(placement.summary, taken, " ({})", 2)
    return Entrant(name, MeasureInput(workload, REFERENCE_TARGET, placement.candidate))


def _entrants(workload: Workload, placements: Sequence[Placement], taken: Sequence[str]) -> list[Entrant]:
    entrants: list[Entrant] = []
    for each in placements:
        names = [*taken, *(entrant.name for entrant in entrants)]
        entrants.append(placement_entrant(workload, each, names))
    return entrants


def _names(contest: Contest) -> list[str]:
    return [entrant.name for entrant in contest.entrants]
