"""The search of placements end to end: nothing twice, and within its budget."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.collage_costs import One, Two
from tests.collage_programs import program
from tests.mock_cost_estimator import MockCostEstimator
from tests.tuning_passes import Deciding

from intarsia.collage.collage_partition import MEASURED
from intarsia.collage.costs.cost_estimator import COST_ESTIMATORS
from intarsia.collage.placement.placement import Placement
from intarsia.collage.placement_search import PlacementSearch, WholeCandidate
from intarsia.collage.tune_placement import TunePlacement
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import LocalTestbed, Measured
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.target import Host, Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.tune import MeasuringEvaluator, Trace, TuningContext
from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction
from intarsia.tune.run_control import RunControl
from intarsia.tune.tuned_candidate import decisions_and_base

MOD = program("def @main(%x: T) { Exp(Softmax(Exp(Softmax(Exp(Softmax(Exp(Softmax(%x)))))))) }")
TUNING = TunePlacement(targets=("one", "two"), estimator="planted", covers=1, evolves=True, reach=1.1)
SECONDS = {("one", "Exp"): 1.0, ("one", "Softmax"): 4.0, ("two", "Exp"): 3.0, ("two", "Softmax"): 1.0}


@pytest.fixture(autouse=True, scope="module")
def toolchains() -> Iterator[None]:
    planted = MockCostEstimator({"one": 1, "two": 2})
    with (
        TOOLCHAINS.holding("one", One),
        TOOLCHAINS.holding("two", Two),
        holding_operator_predicate("one", lambda _: True),
        holding_operator_predicate("two", lambda _: True),
        COST_ESTIMATORS.holding("planted", planted),
    ):
        yield


class PlantedTestbed(LocalTestbed):
    """Nothing is built or run: a placement takes the sum of its operators and of its partitions."""

    def __init__(self) -> None:  # no folder, no workers
        self.host = Host.detect()
        self.asked: list[tuple[str, str, str]] = []

    @property
    def width(self) -> int:
        return 16

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        for item in inputs:
            self.asked.append((item.workload.digest, str(item.target), item.candidate.digest))
            seconds = latency(item)
            error = MeasureError.OK if math.isfinite(seconds) else MeasureError.CRASH
            yield Measured(item, Outcome(error, "", (seconds,) * 6 if error is MeasureError.OK else ()), 2.0)


def latency(item: MeasureInput) -> float:
    base = decisions_and_base(item.candidate)[1]
    if base.kind == WHOLE.kind:
        return 0.5 + sum(4 * SECONDS[str(item.target.toolchain), name] for name in ("Exp", "Softmax"))
    return sum(
        0.5 + sum(SECONDS[each.toolchain, name] for name in each.label.split("+"))
        for each in Placement.of_candidate(base).partitions
    )


def searching(
    testbed: PlantedTestbed,
    database: Database | None = None,
    tuning: TunePlacement = TUNING,
    **limits: Any,
) -> tuple[PlacementSearch, Trace]:
    """A search of placements of a program that both toolchains can run; a measurement takes two seconds."""
    measurer = Measurer(testbed, database)
    control = RunControl(meter=measurer, **limits)
    evaluator = MeasuringEvaluator(
        Workload(MOD, "planted"), REFERENCE_TARGET, measurer, control=control, by_decisions=True
    )
    ctx = TuningContext(evaluator, control=control)
    return PlacementSearch(tuning, ctx, tuple(map(Target.for_toolchain, tuning.targets))), Trace(MOD)


def best(testbed: PlantedTestbed, database: Database | None = None, **limits: Any) -> Trace:
    search, trace = searching(testbed, database, **limits)
    return search.best(trace)


@pytest.fixture(scope="module")
def searched() -> tuple[PlantedTestbed, Trace]:
    """A testbed, and the best that a search without a limit found on it."""
    testbed = PlantedTestbed()
    return testbed, best(testbed)


def test_each_operator_goes_where_it_is_fastest(searched: tuple[PlantedTestbed, Trace]) -> None:
    assert searched[1].perf == 8 * 1.5


def test_nothing_is_measured_twice_and_no_more_than_the_budget_allows() -> None:
    testbed = PlantedTestbed()
    search, trace = searching(testbed, seconds=33.0)
    search.best(trace)
    assert len(testbed.asked) == len(set(testbed.asked)) == 17
    assert search.ctx.control.is_spent
    few = PlantedTestbed()
    best(few, trials=5)
    assert len(few.asked) == 5


def test_a_toolchain_that_runs_all_is_measured_as_such(searched: tuple[PlantedTestbed, Trace]) -> None:
    wholes = [key for key in searched[0].asked if key[2] == WHOLE.digest]
    assert sorted(target for _, target, _ in wholes) == ["cpu -toolchain=one", "cpu -toolchain=two"]


@pytest.mark.slow
def test_the_same_search_again_measures_nothing(tmp_path: Path) -> None:
    testbed, costs = PlantedTestbed(), []
    for _ in range(2):
        with Database.open(tmp_path / "measurements.db") as database:
            costs.append(best(testbed, database, seconds=41.0).perf)
        assert len(testbed.asked) == 21
    assert costs[0] == costs[1]
    with Database.open(tmp_path / "measurements.db") as database:
        more = best(testbed, database, seconds=61.0)
    assert len(testbed.asked) == 31
    assert (more.perf or 0) <= (costs[0] or 0)


def test_a_wish_to_stop_ends_it_with_what_is_measured() -> None:
    testbed = PlantedTestbed()
    assert best(testbed, should_stop=lambda: len(testbed.asked) >= 7).perf is not None
    assert 7 <= len(testbed.asked) <= 8


def test_a_target_that_is_too_far_behind_gets_no_passes() -> None:
    tuning = replace(TUNING, eval_passes=(Deciding(what="fact"),), evolves=False, covers=0)
    search, trace = searching(PlantedTestbed(), tuning=tuning)
    search.best(trace)
    assert [child.name for child in search.ctx.node.children if child.children] == ["two"]
    (skipped,) = search.ctx.control.skipped
    assert skipped.what == "tuning passes for one"
    assert "times as slow as the fastest" in skipped.reason


@pytest.mark.slow
def test_parts_are_searched_where_no_toolchain_runs_the_whole() -> None:
    class NoWholes(PlantedTestbed):
        def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
            for item in inputs:
                if decisions_and_base(item.candidate)[1].kind == WHOLE.kind:
                    yield Measured(item, Outcome(MeasureError.COMPILE, "it cannot run this"), 2.0)
                else:
                    yield from super().measure([item])

    assert best(NoWholes()).perf == 8 * 1.5


FAR = {**SECONDS, ("one", "Softmax"): 12.0}
"""Toolchain one takes more than three times as long as the other one for the whole program."""


def test_a_toolchain_far_behind_gets_no_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SECONDS, ("one", "Softmax"), FAR["one", "Softmax"])
    testbed = PlantedTestbed()
    search, trace = searching(testbed)
    assert search.best(trace).perf == 16.5
    assert len(testbed.asked) == 2
    (skipped,) = search.ctx.control.skipped
    assert str(skipped) == "parts on one: it takes 3.2 times as long as the fastest for the whole program"


@pytest.mark.slow
def test_a_run_that_proves_gives_parts_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SECONDS, ("one", "Softmax"), FAR["one", "Softmax"])
    assert best(PlantedTestbed(), proves=True).perf == 8 * 1.5


def test_mixes_of_measured_parts_that_are_far_behind_are_not_evolved() -> None:
    search, trace = searching(PlantedTestbed(), tuning=replace(TUNING, estimator=MEASURED))
    whole, slow = (replace_cost(trace, cost) for cost in (1.0, 1.2))
    wholes = [WholeCandidate(trace, whole)]
    assert not search._can_catch_up([slow], wholes)
    assert search._can_catch_up([replace_cost(trace, 1.05)], wholes)
    assert search._can_catch_up([slow], [])
    (skipped,) = search.ctx.control.skipped
    assert "1.20 times as long as the fastest toolchain alone" in str(skipped)


@pytest.mark.parametrize(("gain", "is_kept"), [(1.01, False), (1.1, True)])
def test_parts_are_of_the_changed_program_only_if_it_is_clearly_faster(gain: float, *, is_kept: bool) -> None:
    search, trace = searching(PlantedTestbed())
    changed = trace.copy()
    changed.add(Instruction("decision", {"done": Choice()}), "done", search.ctx)
    wholes = [
        WholeCandidate(trace, replace_cost(trace, gain)),
        WholeCandidate(changed, replace_cost(trace, 1.0)),
    ]
    assert search._opened(wholes) is (changed if is_kept else trace)


def replace_cost(trace: Trace, cost: float) -> Trace:
    copied = trace.copy()
    copied.perf = cost
    return copied
