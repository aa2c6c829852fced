"""Costs by measuring: each structure once, known ones never, and what is wrong with the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.collage_costs import parts, spec
from tests.collage_programs import main_graph, program
from tests.collage_testbeds import measurements_in
from tests.faulty_toolchains import faulty_toolchains

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.collage import collage
from intarsia.collage.costs.captured_values import CapturedValues
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.costs.measured_cost_estimator import SETTLED, MeasuredCostEstimator
from intarsia.collage.prune import collect_candidates
from intarsia.collage.rules.typical_rules import graph_style_rule, host_rule, reference_rule
from intarsia.ir import IRModule
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.target import Target

RIGHT = spec("right", graph_style_rule(lambda _: True))
REFERENCE = spec("reference", reference_rule())
HOST = PartitionSpec("host", Target("cpu"), host_rule())
CHAIN = "def @main(%x: T) { Relu(Abs(Relu(Abs(%x)))) }"


@pytest.fixture(autouse=True, scope="module")
def toolchains() -> Iterator[None]:
    with faulty_toolchains():
        yield


@pytest.fixture
def testbed(shared_testbed: LocalTestbed) -> LocalTestbed:
    return shared_testbed


@pytest.fixture
def measurer(testbed: LocalTestbed, tmp_path: Path) -> Iterator[Measurer]:
    with Database.open(tmp_path / "measurements.db") as database:
        yield Measurer(testbed, database)


def kept(measurer: Measurer) -> int:
    assert measurer.database is not None
    return len(measurements_in(measurer.database))


def estimator(
    measurer: Measurer,
    mod: IRModule,
    given: Mapping[str, npt.NDArray[Any]] | None = None,
    **options: Any,
) -> MeasuredCostEstimator:
    values = CapturedValues.of(Workload(mod, special_inputs=given or {}), main_graph(mod), measurer.testbed)
    return MeasuredCostEstimator(measurer, mod, values, **options)


def candidates(mod: IRModule, own: PartitionSpec, *labels: str) -> list[CandidatePartition]:
    """Those of some labels, or all."""
    found = collect_candidates(main_graph(mod), [own]).candidates
    return [one for one in found if not labels or one.sub_graph.label in labels]


@pytest.mark.slow
def test_equal_structures_are_measured_once(measurer: Measurer) -> None:
    """Weights and places do not matter; shapes, targets and operators do."""
    mod = program(CHAIN)
    asked = candidates(mod, RIGHT, "Abs", "Relu", "Abs+Relu") + candidates(mod, REFERENCE, "Abs")
    assert len(asked) == 8
    found = estimator(measurer, mod).estimate(asked)
    assert kept(measurer) == 4
    assert all(each.cost.is_value and each.error is MeasureError.OK for each in found)
    assert all(0 < each.low <= each.cost.seconds <= each.high < 1 for each in found)
    assert sum(not each.was_known for each in found) == 4
    costs: dict[tuple[str, str], Cost] = {}
    for candidate, each in zip(asked, found, strict=True):
        key = (candidate.spec.name, candidate.sub_graph.label)
        assert costs.setdefault(key, each.cost) == each.cost


@pytest.mark.slow
def test_known_ones_are_not_measured_again(measurer: Measurer) -> None:
    mod = program(CHAIN)
    asked = candidates(mod, RIGHT)
    own = estimator(measurer, mod)
    first = own.estimate(asked)
    count = kept(measurer)
    again = own.estimate(asked)
    later = estimator(measurer, program(CHAIN)).estimate(candidates(program(CHAIN), RIGHT))
    assert kept(measurer) == count
    assert [each.cost for each in first] == [each.cost for each in again] == [each.cost for each in later]
    assert all(each.was_known for each in (*again, *later))
    assert not all(each.was_known for each in first)


@pytest.mark.processes
def test_a_second_look_is_taken_once(measurer: Measurer) -> None:
    """Both measurements count, and a later run finds both."""
    mod = program(CHAIN)
    asked = candidates(mod, RIGHT, "Abs", "Relu")
    own = estimator(measurer, mod)
    own.estimate(asked)
    assert kept(measurer) == 2
    settled = own.settle(asked)
    assert kept(measurer) == 2 * SETTLED
    assert own.settle(asked)[0].cost == settled[0].cost
    later = estimator(measurer, mod)
    assert later.settle(asked)[0].cost == settled[0].cost
    assert all(each.was_known for each in later.settle(asked))
    assert kept(measurer) == 2 * SETTLED


def test_without_a_database_a_second_look_is_taken_once_too(testbed: LocalTestbed) -> None:
    finished: list[int] = []
    mod = program("def @main(%x: T) { Abs(%x) }")
    own = estimator(Measurer(testbed, on_progress=lambda progress: finished.append(progress.done)), mod)
    asked = candidates(mod, RIGHT)
    own.estimate(asked)
    for _ in range(3):
        own.settle(asked)
    assert sum(finished) == 2


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("wrong", MeasureError.WRONG_ANSWER, "output"),
        ("failing", MeasureError.RUNTIME, "the engine lost its nerve"),
        ("refusing", MeasureError.COMPILE, "operator 'Relu' is beneath this toolchain"),
        ("crashing", MeasureError.CRASH, ""),
        ("missing", MeasureError.COMPILE, "it is not installed"),
    ],
)
def test_failures_are_values(measurer: Measurer, name: str, error: MeasureError, message: str) -> None:
    mod = program("def @main(%x: T) { Relu(%x) }")
    asked = candidates(mod, spec(name, graph_style_rule(lambda _: True))) + candidates(mod, RIGHT)
    bad, good = estimator(measurer, mod).estimate(asked)
    assert (bad.cost, bad.error) == (Cost.INVALID, error)
    assert message in bad.message
    assert bad.message
    assert (bad.low, bad.high) == (math.inf, math.inf)
    assert good.cost.is_value
    assert estimator(measurer, mod).settle(asked[:1])[0].cost == Cost.INVALID


def test_without_time_costs_stay_unknown(measurer: Measurer) -> None:
    mod = program(CHAIN)
    asked = candidates(mod, RIGHT, "Abs")
    own = estimator(measurer, mod, seconds=0.0)
    (first, *_) = own.estimate(asked)
    assert (first.cost, first.message) == (Cost.UNKNOWN, "there was no time to measure it")
    assert own.seconds_left() <= 0
    assert estimator(measurer, mod).seconds_left() == math.inf
    measurer.should_stop = lambda: True
    (stopped, *_) = estimator(measurer, mod).estimate(asked)
    assert stopped.cost == Cost.UNKNOWN
    assert kept(measurer) == 0


def test_known_costs_need_no_time(measurer: Measurer) -> None:
    mod = program(CHAIN)
    asked = candidates(mod, RIGHT, "Abs")
    estimator(measurer, mod).estimate(asked)
    assert estimator(measurer, mod, seconds=0.0).estimate(asked)[0].cost.is_value


def test_the_spec_is_asked_first(measurer: Measurer) -> None:
    mod = program(CHAIN)
    picky = replace(RIGHT, validate=lambda function: "" if len(str(function)) > 10**6 else "it is too short")
    (found, *_) = estimator(measurer, mod).estimate(candidates(mod, picky, "Abs"))
    assert (found.cost, found.error, found.message) == (Cost.INVALID, MeasureError.COMPILE, "it is too short")
    assert found.was_known
    assert kept(measurer) == 0


def test_what_every_run_costs_is_taken_off(measurer: Measurer) -> None:
    """But never all of it: a tenth stays."""
    mod = program(CHAIN)
    asked = candidates(mod, RIGHT, "Abs")
    (plain, *_) = estimator(measurer, mod).estimate(asked)
    half = plain.cost.seconds / 2
    (less, *_) = estimator(measurer, mod, run_seconds=half).estimate(asked)
    assert less.cost.seconds == pytest.approx(plain.cost.seconds - half)
    (least, *_) = estimator(measurer, mod, run_seconds=10.0).estimate(asked)
    assert least.cost.seconds == pytest.approx(0.1 * plain.cost.seconds)
    assert least.low <= least.cost.seconds <= least.high


@pytest.mark.processes
def test_candidates_see_the_programs_own_values(measurer: Measurer) -> None:
    """Random numbers are no valid indices of three rows: 0 to 7 are drawn."""
    mod = program("""
    def @main(%x: Tensor[(5, 3), float32], %d: Tensor[(3, 2), float32]) {
      Gather(%d, ArgMax(%x, axis=1, keepdims=0))
    }
    """)
    for seed in range(4):
        given = {"x": np.random.default_rng(seed).normal(size=(5, 3)).astype(np.float32)}
        (found,) = estimator(measurer, mod, given).estimate(candidates(mod, RIGHT, "Gather"))
        assert found.cost.is_value, found.message


@pytest.mark.processes
def test_candidates_in_branches_are_measured_on_random_values(measurer: Measurer) -> None:
    mod = program("def @main(%x: T, %f: Tensor[(), bool]) { if (%f) { Abs(Relu(%x)) } else { %x } }")
    asked = candidates(mod, RIGHT, "Abs+Relu", "Relu+Abs", "Abs")
    assert len(asked) == 2
    assert all(each.cost.is_value for each in estimator(measurer, mod).estimate(asked))


SYMBOLIC = """
def @main(%x: Tensor[(n,), float32], %f: Tensor[(), bool]) {
  if (%f) { Abs(Relu(%x)) } else { %x }
}
"""


def test_what_cannot_be_measured_by_itself(measurer: Measurer) -> None:
    """In a branch the values are not captured, and a shape that is not known gives no random ones."""
    mod = program(SYMBOLIC)
    given = {"x": np.ones(3, np.float32), "f": np.array(True)}
    own = estimator(measurer, mod, given)
    (found, *_) = own.estimate(candidates(mod, RIGHT, "Abs"))
    assert (found.cost, found.error) == (Cost.INVALID, MeasureError.UNKNOWN)
    assert found.message.startswith("it cannot be measured by itself: input 'p0' has the symbolic shape")
    result = collage(mod, (REFERENCE, HOST), own)
    assert parts(result.best.partitions) == [("reference", "Relu"), ("reference", "Abs")]
    assert result.functions[0].best.unmeasured == 1, "Relu sees a value of its own"
    assert not result.functions[0].is_exact


def test_candidates_that_call_other_functions(measurer: Measurer) -> None:
    mod = program("""
    def @main(%x: T) { Relu(@f(Abs(%x))) }
    def @f(%y: T) { Neg(%y) }
    """)
    graph = main_graph(mod)
    computed = graph.computed
    whole = CandidatePartition(
        RIGHT.candidates(graph)[0].sub_graph.of(graph, computed).with_attrs({"Primitive": 1}), RIGHT
    )
    (found,) = estimator(measurer, mod).estimate([whole])
    assert found.cost.is_value, found.message


def test_what_cannot_stand_alone(measurer: Measurer) -> None:
    """A call of @main from within."""
    mod = program("""
    def @main(%x: T, %f: Tensor[(), bool]) -> T { if (%f) { @again(%x, %f) } else { %x } }
    def @again(%x: T, %f: Tensor[(), bool]) -> T { Relu(@main(%x, %f)) }
    """)
    graph = main_graph(mod)
    choice = next(node.index for node in graph if node.is_external)
    whole = RIGHT.candidates(main_graph(program(CHAIN)))[0].sub_graph.of(graph, graph.unit(choice))
    own = MeasuredCostEstimator(measurer, mod, CapturedValues())
    (found,) = own.estimate([CandidatePartition(whole, RIGHT)])
    assert isinstance(found, Estimate)
    assert (found.cost, found.error) == (Cost.INVALID, MeasureError.INSTANTIATION)
    assert "calls @main, so that it cannot stand alone" in found.message


@pytest.mark.processes
def test_files_of_candidates_are_removed(measurer: Measurer, testbed: LocalTestbed) -> None:
    before = {path.name for path in (testbed.folder.path / "workloads").iterdir()}
    mod = program(CHAIN.replace("Abs", "Neg"))
    own = estimator(measurer, mod)
    assert {path.name for path in (testbed.folder.path / "workloads").iterdir()} == before
    assert own.values.arrays
    captured = {path.name for path in (testbed.folder.path / "workloads").iterdir()}
    own.estimate(candidates(mod, RIGHT))
    assert {path.name for path in (testbed.folder.path / "workloads").iterdir()} == captured
    assert len(captured - before) == 1
