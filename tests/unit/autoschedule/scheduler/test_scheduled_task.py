"""Tasks as the scheduler knows them, and records of them."""

from math import inf

import pytest
from tests.native_workloads import Tensors, matmul

from intarsia.autoschedule.scheduler import (
    ScheduledTask,
    SchedulerOptions,
    TaskScheduler,
    restore_from_records,
)
from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state.record import Record, RecordResult, RecordTask
from intarsia.target import Target


class _Tuner:
    def tune_round(self, n: int) -> list[float]:
        return [1e-3] * n


def _task(tensors: Tensors) -> SearchTask:
    return SearchTask.of_dag(ComputeDAG(tensors), Target("cpu -toolchain=native"), HardwareParams(2))


def test_of_a_search_task() -> None:
    task = _task(matmul(8, 8, 8))
    scheduled = ScheduledTask.of(_Tuner(), task, "dense", 3.0)
    assert (scheduled.name, scheduled.weight, scheduled.similarity_tag) == ("dense", 3.0, "")
    assert scheduled.flop_count == 2 * 8**3
    assert ScheduledTask.of(_Tuner(), task).name == task.workload_key


def test_tags_of_operators() -> None:
    a = te.placeholder((4,), name="A")
    tag = {"auto_scheduler_task_scheduler_tag": "conv"}
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B", attrs=tag)
    c = te.compute((4,), lambda i: b[i] * 2.0, name="C", attrs=tag)
    assert ScheduledTask.of(_Tuner(), _task((a, c))).similarity_tag == "conv_conv"


def _record(key: str, costs: tuple[float, ...], error: int = 0) -> Record:
    return Record(RecordTask(key, "llvm"), (), RecordResult(costs, error, 1.0, 0))


def test_restored_from_records() -> None:
    scheduler = TaskScheduler([ScheduledTask(_Tuner()), ScheduledTask(_Tuner())], SchedulerOptions())
    records = [
        *(_record("b", (2.0, 4.0)), _record("other", (1.0,)), _record("b", (1e10,), error=4)),
        *(_record("b", (1.0, 2.0)), _record("b", ())),
    ]
    assert restore_from_records(scheduler, ["a", "b"], records) == 4
    first, second = scheduler.progress
    assert (first.trials, first.best) == (0, inf)
    assert (second.trials, second.best_trials) == (4, 3)
    assert second.best == pytest.approx(1.5)
