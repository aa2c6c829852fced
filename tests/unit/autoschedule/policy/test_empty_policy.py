from collections.abc import Sequence
from itertools import count

import pytest
from tests.native_workloads import matmul
from tests.schedule_measurers import FakeMeasurer, draft_seconds
from tests.searched_programs import task_of

from intarsia.autoschedule.policy import EmptyPolicy, SearchPolicy, TuningOptions
from intarsia.autoschedule.task import HardwareParams, SearchTask, register_workload
from intarsia.measure.measure_result import MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.target.target import Target

TASK = task_of(matmul(8, 8, 8))


@pytest.mark.parametrize("name", ["matmul", "matmul_auto_schedule_test_rename_1"])
def test_a_registered_workload_is_measured(name: str) -> None:
    """Upstream's workload_registry_empty_policy: by name, and by another name of the same function."""
    register_workload(name, matmul, override=True)
    task = SearchTask.of_workload(name, (128, 128, 128), Target("cpu"), HardwareParams(4))
    measurer = FakeMeasurer()
    policy = EmptyPolicy(task, measurer)
    assert policy.search(TuningOptions(2)) == LoopState.initial(task.dag)
    assert policy.best_cost == draft_seconds(LoopState.initial(task.dag))
    assert [len(states) for states in measurer.rounds] == [2]


@pytest.mark.parametrize("trials", [0, 1])
def test_one_trial_measures_nothing(trials: int) -> None:
    measurer = FakeMeasurer()
    found = EmptyPolicy(TASK, measurer).search(TuningOptions(trials))
    assert found == LoopState.initial(TASK.dag)
    assert measurer.rounds == []


def test_the_loops_are_measured_as_often_as_there_are_trials() -> None:
    measurer, told = FakeMeasurer(), list[int]()

    def on_measured(task: SearchTask, states: Sequence[LoopState], results: Sequence[MeasureResult]) -> None:
        assert task is TASK
        assert len(states) == len(results)
        told.append(len(states))

    policy: SearchPolicy = EmptyPolicy(TASK, measurer, [on_measured])
    found = policy.search(TuningOptions(150))
    assert [len(states) for states in measurer.rounds] == [64, 64, 22]
    assert told == [64, 64, 22]
    assert set(measurer.measured) == {LoopState.initial(TASK.dag)}
    assert found == policy.best_state == LoopState.initial(TASK.dag)
    assert policy.trials == 150


def test_early_stopping_and_failures() -> None:
    costs = count()
    measurer = FakeMeasurer(lambda _: 1.0 if next(costs) < 3 else 2.0)
    policy = EmptyPolicy(TASK, measurer)
    policy.search(TuningOptions(100, early_stopping=10, num_measures_per_round=4))
    assert policy.trials == 12
    assert policy.best_cost == 1.0
    failing = EmptyPolicy(TASK, FakeMeasurer(lambda _: -1.0))
    assert failing.search(TuningOptions(4)) is None
    assert failing.best_cost == float("inf")
