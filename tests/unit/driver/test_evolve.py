"""The fitness of placements: measured end to end, within a time that counts what was measured before."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from tests.collage_costs import HOST_SPEC, REFERENCE_SPEC, One, Two, spec
from tests.collage_programs import program
from tests.mock_cost_estimator import MockCostEstimator

from intarsia.collage.collage import CollageResult, collage
from intarsia.collage.evolution.evolve_placements import EvolvedPlacements, evolve
from intarsia.collage.evolution.placement_space import PlacementSpace
from intarsia.collage.placement.placement import Placement
from intarsia.collage.rules.typical_rules import graph_style_rule
from intarsia.driver.contest import Contest
from intarsia.driver.entrant import Entrant, candidate_key
from intarsia.driver.evolve import FINALISTS, MeasuredFitness, evolved_placements
from intarsia.driver.records import Progress, TuneStage
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import MeasureBudget, Measurer
from intarsia.measure.testbed import LocalTestbed, Measured
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.target import Host, Target

MOD = program("def @main(%x: T) { Exp(Softmax(Exp(Softmax(Exp(Softmax(Exp(Softmax(%x)))))))) }")
SECONDS = {("one", "Exp"): 1.0, ("one", "Softmax"): 4.0, ("two", "Exp"): 3.0, ("two", "Softmax"): 1.0}


@pytest.fixture(autouse=True, scope="module")
def toolchains() -> Iterator[None]:
    with TOOLCHAINS.holding("one", One), TOOLCHAINS.holding("two", Two):
        yield


class PlantedTestbed(LocalTestbed):
    """Nothing is built or run: a placement takes the sum of its operators and of its partitions."""

    def __init__(self) -> None:  # no folder, no workers
        self.host = Host.detect()
        self.asked: list[tuple[str, str]] = []

    @property
    def width(self) -> int:
        return 16

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        for item in inputs:
            self.asked.append(candidate_key(item))
            seconds = latency(item)
            error = MeasureError.OK if math.isfinite(seconds) else MeasureError.CRASH
            yield Measured(item, Outcome(error, "", (seconds,) * 6 if error is MeasureError.OK else ()), 2.0)


def latency(item: MeasureInput) -> float:
    if item.candidate.kind == WHOLE.kind:
        return 0.5 + sum(4 * SECONDS[str(item.target.toolchain), name] for name in ("Exp", "Softmax"))
    return sum(
        0.5 + sum(SECONDS[each.toolchain, name] for name in each.label.split("+"))
        for each in Placement.of_candidate(item.candidate).partitions
    )


def found() -> CollageResult:
    specs = (spec("one", graph_style_rule(lambda _: True)), spec("two", graph_style_rule(lambda _: True)))
    return collage(MOD, (*specs, REFERENCE_SPEC, HOST_SPEC), MockCostEstimator({"one": 1, "two": 2}))


def contest_of(testbed: PlantedTestbed, database: Database | None, seen: list[Progress]) -> Contest:
    """Both toolchains alone have taken part."""
    contest = Contest(Measurer(testbed, database), seen.append, lambda: False)
    workload = Workload(MOD, "planted")
    whole = [
        Entrant(name, MeasureInput(workload, Target.for_toolchain(name), WHOLE)) for name in ("one", "two")
    ]
    contest.enter(whole, MeasureBudget())
    return contest


def fitness_of(contest: Contest, seconds: float) -> MeasuredFitness:
    space = PlacementSpace.of(found())
    assert space is not None
    workload = contest.entrants[0].input.workload
    return MeasuredFitness(contest.measurer, workload, space, seconds, contest.results())


def evolved(fitness: MeasuredFitness, seed: int = 0) -> EvolvedPlacements:
    return evolve(fitness.space, [found().best], fitness, Random(seed))


def test_no_more_is_measured_than_there_is_time_for() -> None:
    """Each takes two seconds; what the contest has measured costs nothing again."""
    testbed = PlantedTestbed()
    fitness = fitness_of(contest_of(testbed, None, []), 33.0)
    result = evolved(fitness)
    assert len(testbed.asked) == len(set(testbed.asked)) == 2 + 16
    assert fitness.spent == 32.0
    assert result.is_cut_off
    assert result.rated == 18


def test_a_toolchain_that_runs_all_is_measured_as_such() -> None:
    fitness = fitness_of(contest_of(PlantedTestbed(), None, []), 10.0)
    whole = fitness.space.decode(fitness.space.uniform(1, fitness.space.encode(found().best)))
    assert whole is not None
    item = fitness.input(whole)
    assert (item.candidate, str(item.target)) == (WHOLE, "cpu -toolchain=two")
    assert fitness([whole]) == [latency(item)]
    assert fitness.spent == 0.0


def test_no_time_measures_nothing_new() -> None:
    testbed = PlantedTestbed()
    result = evolved(fitness_of(contest_of(testbed, None, []), 1.9))
    assert len(testbed.asked) == 2
    assert result.is_cut_off


def test_the_same_run_again_measures_nothing(tmp_path: Path) -> None:
    results = []
    testbed = PlantedTestbed()
    for _ in range(2):
        with Database.open(tmp_path / "measurements.db") as database:
            results.append(evolved(fitness_of(contest_of(testbed, database, []), 41.0)))
        assert len(testbed.asked) == 2 + 20
    assert results[0] == results[1]
    with Database.open(tmp_path / "measurements.db") as database:
        more = evolved(fitness_of(contest_of(testbed, database, []), 61.0))
    assert len(testbed.asked) == 2 + 30
    assert more.best[0].seconds <= results[0].best[0].seconds


def test_a_wish_to_stop_is_heard() -> None:
    testbed = PlantedTestbed()
    contest = contest_of(testbed, None, [])
    contest.measurer.should_stop = lambda: len(testbed.asked) >= 7
    result = evolved(fitness_of(contest, 100.0))
    assert len(testbed.asked) == 7
    assert result.is_cut_off


def test_the_best_new_placements_enter() -> None:
    seen: list[Progress] = []
    contest = contest_of(PlantedTestbed(), None, seen)
    workload = contest.entrants[0].input.workload
    best = evolved_placements(contest, workload, found(), 400.0, seed=0)
    seconds = [latency(MeasureInput(workload, Target("cpu"), each.candidate)) for each in best]
    assert len(best) == FINALISTS
    assert seconds == sorted(seconds)
    assert seconds[0] == 8 * 1.5  # each operator where it is the fastest
    searching = [each for each in seen if each.stage is TuneStage.SEARCH]
    assert [each.fraction for each in searching] == sorted(each.fraction for each in searching)
    assert 0 < searching[-1].fraction <= 1


def test_what_is_far_from_the_best_does_not_enter() -> None:
    """With so little time that only the seeds are measured, none of them beats a toolchain alone by far."""
    contest = contest_of(PlantedTestbed(), None, [])
    workload = contest.entrants[0].input.workload
    best = min(result.cost for result in contest.results().values())
    for each in evolved_placements(contest, workload, found(), 9.0, seed=0):
        assert latency(MeasureInput(workload, Target("cpu"), each.candidate)) <= 1.1 * best
