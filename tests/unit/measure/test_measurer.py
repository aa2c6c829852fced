"""Candidates are built and run in workers; a bad one loses only itself, and nothing is measured twice."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.ir_programs import relu, var

from intarsia.ir import Constant, Function, IRModule
from intarsia.measure.candidate_kind import AS_IT_IS, WHOLE
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Candidate, MeasureInput, Workload
from intarsia.measure.measure_progress import MeasureProgress
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import Measured
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.measure.workers import TaskLimits
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.op import call
from intarsia.target import Host, Target

REFERENCE = Target("cpu -toolchain=reference")
POLICY = TimingPolicy(warmup_seconds=0, warmup_calls=1, repeats=6, min_repeats=6, min_repeat_seconds=0)
HOST = Host.detect()


def program() -> IRModule:
    x = var()
    weights = Constant(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    return IRModule.from_expr(Function((x,), relu(call("Add", x, weights))))


WORKLOAD = Workload(program(), "small")


def candidate(kind: str, trace: int | None = None) -> MeasureInput:
    return MeasureInput(WORKLOAD, REFERENCE, Candidate(kind, trace))


FIVE = [candidate("test right", index) for index in range(5)]


class PlannedTestbed(LocalTestbed):
    """Nothing is built or run: each candidate takes ten seconds, and costs one more than the one before."""

    def __init__(self, lanes: int = 1) -> None:  # no folder, no workers
        self.host, self._lanes = HOST, lanes
        self.measured: list[MeasureInput] = []

    @property
    def lanes(self) -> int:
        return self._lanes

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        for item in inputs:
            self.measured.append(item)
            yield Measured(item, Outcome(costs=(float(len(self.measured)),)), 10.0)


@pytest.fixture
def testbed(shared_testbed: LocalTestbed) -> LocalTestbed:
    return shared_testbed


@pytest.fixture
def measurer(testbed: LocalTestbed) -> Measurer:
    return Measurer(testbed)


def test_a_workload_comes_back_from_its_folder(tmp_path: Path) -> None:
    data = np.full((2, 3), 2, np.float32)
    workload = Workload(program(), special_inputs={"x": data})
    folder = WorkloadFolder.write(workload, tmp_path)
    assert Workload(folder.module()).digest == Workload(program()).digest
    assert folder.inputs()["x"].tolist() == data.tolist()
    assert not folder.inputs()["x"].flags.owndata  # mapped, not read
    gate = folder.gate()
    assert gate.check(gate.expected).passed
    assert not gate.check([gate.expected[0] + 1]).passed
    assert WorkloadFolder.write(workload, tmp_path).path == folder.path


@pytest.mark.slow
def test_costs_of_candidates_that_work(measurer: Measurer) -> None:
    inputs = [MeasureInput(WORKLOAD, REFERENCE, item) for item in (WHOLE, AS_IT_IS)]
    for result in measurer.measure(inputs):
        assert result is not None
        assert result.is_ok, result.message
        assert len(result.costs) == 6
        assert 0 < result.cost < 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("test wrong", MeasureError.WRONG_ANSWER, "output"),
        ("test nobody", MeasureError.COMPILE, "unknown toolchain 'nobody'"),
        ("no such kind", MeasureError.INSTANTIATION, "unknown candidate kind 'no such kind'"),
        ("test raises", MeasureError.INSTANTIATION, "ValueError: trace 7 makes no sense"),
    ],
)
def test_failures_are_values(measurer: Measurer, kind: str, error: MeasureError, message: str) -> None:
    (result,) = measurer.measure([candidate(kind, 7)])
    assert result is not None
    assert result.error is error
    assert message in result.message
    assert result.costs == ()


BAD = {
    "test raises": {MeasureError.INSTANTIATION},
    "test segfaults": {MeasureError.CRASH},
    "test aborts": {MeasureError.CRASH},
    "test exits": {MeasureError.CRASH, MeasureError.INSTANTIATION, MeasureError.UNKNOWN},
    "test loops": {MeasureError.BUILD_TIMEOUT},
    "test grows": {MeasureError.OUT_OF_MEMORY},
    "test closes_files": {MeasureError.OK, MeasureError.CRASH, MeasureError.UNKNOWN, MeasureError.COMPILE},
    "test kills": {MeasureError.CRASH},
    "test floods": {MeasureError.INSTANTIATION},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_candidate_loses_only_itself(testbed: LocalTestbed, kind: str) -> None:
    """Each kind of fault among good candidates; the pool's own fault table has twenty of each."""
    limits = TaskLimits(seconds=4.0) if kind == "test loops" else TaskLimits(60.0, memory_bytes=512 << 20)
    limited = replace(testbed, builder=replace(testbed.builder, limits=limits))
    inputs = [candidate(kind if index % 4 == 1 else "test right", index) for index in range(8)]
    results = Measurer(limited).measure(inputs)
    for index, result in enumerate(results):
        assert result is not None
        expected = BAD[kind] if index % 4 == 1 else {MeasureError.OK}
        assert result.error in expected, result.message


def test_equal_candidates_are_measured_once(measurer: Measurer) -> None:
    seen: list[MeasureProgress] = []
    measurer.on_progress = seen.append
    first, other, again = measurer.measure(
        [candidate("test right", 1), candidate("test right", 2), candidate("test right", 1)]
    )
    assert first is again is not other
    assert [(item.done, item.total) for item in seen] == [(0, 2), (1, 2), (2, 2)]


class TestDatabase:
    @pytest.fixture
    def kept(self, measurer: Measurer, tmp_path: Path) -> Iterator[Measurer]:
        with Database.open(tmp_path / "measurements.db") as database:
            measurer.database = database
            yield measurer

    def test_what_is_known_is_not_measured_again(self, kept: Measurer) -> None:
        inputs = [candidate("test right"), candidate("test raises")]
        before = kept.measure(inputs)
        seen: list[MeasureProgress] = []
        kept.on_progress = seen.append
        after = kept.measure([*inputs, candidate("test wrong")])
        assert after[:2] == before
        assert [(item.done, item.stored, item.total) for item in seen] == [(2, 2, 3), (3, 2, 3)]
        assert seen[-1].failed == {MeasureError.INSTANTIATION: 1, MeasureError.WRONG_ANSWER: 1}

    def test_costs_of_another_host_do_not_count(self, kept: Measurer, testbed: LocalTestbed) -> None:
        kept.measure([candidate("test right")])
        seen: list[MeasureProgress] = []
        elsewhere = replace(testbed, host=replace(HOST, cpu_model="another"))
        replace(kept, testbed=elsewhere, on_progress=seen.append).measure([candidate("test right")])
        assert [item.stored for item in seen] == [0, 0]

    def test_every_result_is_kept_at_once(self, kept: Measurer) -> None:
        """A run that ends in the middle goes on where it was."""
        inputs = [candidate("test right", index) for index in range(6)]

        def interrupt(progress: MeasureProgress) -> None:
            if progress.done == 3:
                raise KeyboardInterrupt

        kept.on_progress = interrupt
        with pytest.raises(KeyboardInterrupt):
            kept.measure(inputs)
        seen: list[MeasureProgress] = []
        kept.on_progress = seen.append
        results = kept.measure(inputs)
        assert all(result is not None and result.is_ok for result in results)
        assert [(item.done, item.stored) for item in seen] == [(3, 3), (4, 3), (5, 3), (6, 3)]


class TestBudget:
    def test_trials(self, measurer: Measurer) -> None:
        inputs = [candidate("test right", index) for index in range(5)]
        results = measurer.measure(inputs, trials=2)
        assert [result is not None for result in results] == [True, True, False, False, False]

    def test_seconds(self) -> None:
        results = Measurer(PlannedTestbed()).measure(FIVE, seconds=25)
        assert [result is not None for result in results] == [True, True, True, False, False]

    def test_a_run_that_was_ended_by_its_budget_measures_nothing_when_repeated(self, tmp_path: Path) -> None:
        testbed = PlannedTestbed()
        with Database.open(tmp_path / "kept.db") as database:
            first = Measurer(testbed, database)
            results = first.measure(FIVE, seconds=25)
            second = Measurer(testbed, database)
            assert second.measure(FIVE, seconds=25) == results
        assert first.spent == second.spent == 30
        assert testbed.measured == FIVE[:3]

    def test_who_is_content_with_one_measurement_does_not_see_the_second(self, tmp_path: Path) -> None:
        testbed = PlannedTestbed()
        with Database.open(tmp_path / "kept.db") as database:
            first = Measurer(testbed, database)
            seen = [first.measure(FIVE[:1], enough=enough) for enough in (1, 2, 1)]
            second = Measurer(testbed, database)
            assert [second.find(FIVE[0], enough) for enough in (1, 2, 1)] == [result for (result,) in seen]
            assert second.find(FIVE[0], 3) is None
        assert seen[0] != seen[1] == seen[2]
        assert len(testbed.measured) == 2
        assert first.spent == second.spent == 20

    def test_without_a_database_each_measurement_counts_once(self) -> None:
        measurer = Measurer(PlannedTestbed(lanes=2))
        measurer.measure(FIVE, seconds=12)
        assert measurer.spent == 15

    def test_what_goes_before_a_measurement_counts_in_every_run(self, tmp_path: Path) -> None:
        now, testbed = [0.0], PlannedTestbed()
        with Database.open(tmp_path / "kept.db") as database:
            first = Measurer(testbed, database, clock=lambda: now[0], earlier=7.0)
            now[0] += 13.0
            first.measure(FIVE[:2])
            assert (first.spent, first.measuring_seconds) == (20.0, 20.0)
            now[0] += 30.0
            assert (first.spent, first.elapsed) == (20.0, 50.0)
            first.measure(FIVE[:3])
            assert (first.spent, first.measuring_seconds) == (50.0, 30.0)
            second = Measurer(testbed, database, clock=lambda: now[0], earlier=1.0)
            for inputs in (FIVE[:2], FIVE[:3]):
                now[0] += 5.0
                second.measure(inputs)
            assert (second.spent, second.elapsed, second.measuring_seconds) == (50.0, 50.0, 30.0)
        assert testbed.measured == FIVE[:3]

    def test_a_wish_to_stop_keeps_what_there_is(self, measurer: Measurer) -> None:
        wishes: list[bool] = []
        measurer.on_progress = lambda progress: wishes.extend([True] * progress.done)
        measurer.should_stop = lambda: bool(wishes)
        results = measurer.measure([candidate("test right", index) for index in range(3)])
        assert [result is not None for result in results] == [True, False, False]

    def test_progress_tells_the_time_left(self, measurer: Measurer) -> None:
        now, seen = [0.0], list[MeasureProgress]()

        def note(progress: MeasureProgress) -> None:
            now[0] = (progress.done + 1) * 10
            seen.append(progress)

        measurer.clock, measurer.on_progress = (lambda: now[0]), note
        measurer.measure([candidate("test right", index) for index in range(3)], seconds=60)
        assert [(item.seconds, item.seconds_left) for item in seen] == [(0, 0), (10, 20), (20, 10), (30, 0)]


def test_each_used_measurement_is_an_event_once() -> None:
    measurer = Measurer(PlannedTestbed())
    measurer.measure(FIVE[:2])
    measurer.measure(FIVE[:3])
    events = measurer.events
    assert [(event.at, event.seconds, event.cost) for event in events] == [
        (10.0, 10.0, 1.0),
        (20.0, 10.0, 2.0),
        (30.0, 10.0, 3.0),
    ]
    assert {event.kind for event in events} == {"test right"}
    assert (events[0].workload, events[0].target) == (WORKLOAD.digest, str(REFERENCE))
    assert (measurer.spent, measurer.trials) == (30.0, 3)
