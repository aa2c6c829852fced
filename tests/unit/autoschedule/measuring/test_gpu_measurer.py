"""Schedules measured on a fake GPU by worker processes: what fails there loses itself only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from tests.gpu_on_cpu import at_hand
from tests.gpu_on_cpu.at_hand import FAULT_BLOCKS, HANG_BLOCKS
from tests.gpu_on_cpu.fake_machine import machine_with_gpus, machine_without_driver
from tests.gpu_schedules import batched_product, chain, gpu_task

from intarsia.autoschedule.measuring import SCHEDULE_LIMITS, PoolMeasurer, ScheduleDatabase, load_records
from intarsia.autoschedule.policy import PolicyOptions, TuningOptions, tune
from intarsia.autoschedule.policy.gpu_policy import gpu_policy
from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.measure.database import Database
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.testbed import local
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.native import te
from intarsia.native.gpu.default_gpu_state import default_gpu_state
from intarsia.native.gpu.schedule_stages import per_element
from intarsia.native.loop_state import LoopState
from intarsia.native.machine.isa import Isa
from intarsia.toolchain.this_host import this_host

pytestmark = pytest.mark.processes
ROWS = FAULT_BLOCKS * HANG_BLOCKS
GOOD_BLOCKS = 7 * FAULT_BLOCKS
FEW = PolicyOptions(
    sample_init_min_population=6, evolutionary_search_population=6, evolutionary_search_num_iters=1
)
QUICK = TimingPolicy(warmup_seconds=0.0, warmup_calls=1, min_repeat_seconds=1e-4, max_seconds=0.1)


@pytest.fixture
def gpu_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with a fake GPU of little memory, for workers too."""
    monkeypatch.setattr(local, "PRELOAD", (*local.PRELOAD, at_hand.__name__))
    with machine_with_gpus():
        yield


@pytest.fixture
def measurer(gpu_machine: None) -> Iterator[PoolMeasurer]:
    """One worker that builds and one that runs."""
    limits = replace(SCHEDULE_LIMITS, build_seconds=60.0, run_seconds=8.0, turn=QUICK)
    with PoolMeasurer.open(Isa.host(), limits, workers=1) as opened:
        yield opened


def doubled() -> SearchTask:
    x = te.placeholder((ROWS,), name="X")
    return gpu_task((x, te.compute((ROWS,), lambda i: x[i] * 2, name="Y")))


def sums_of_products() -> SearchTask:
    """Sums of rows of an outer product, which alone takes more than the memory of the fake GPU."""
    x, y = te.placeholder((1024,), name="X"), te.placeholder((2200,), name="Y")
    outer = te.compute((1024, 2200), lambda i, j: x[i] * y[j], name="outer")
    k = te.reduce_axis(2200, "k")
    return gpu_task((x, y, te.compute((1024,), lambda i: te.sum(outer[i, k], axis=k), name="sums")))


def in_blocks(task: SearchTask, blocks: int) -> LoopState:
    """A schedule with so many blocks of equal length."""
    state = LoopState.initial(task.dag).split("Y", 0, [ROWS // blocks])
    return state.bind("Y", 0, "blockIdx.x").bind("Y", 1, "threadIdx.x")


def errors(results: list[MeasureResult]) -> list[MeasureError]:
    return [result.error for result in results]


def test_faults_and_hangs_lose_their_own_schedule_only(measurer: PoolMeasurer) -> None:
    task = doubled()
    good, fault, hang = (in_blocks(task, blocks) for blocks in (GOOD_BLOCKS, FAULT_BLOCKS, HANG_BLOCKS))
    results = measurer.measure(task, [good, fault, default_gpu_state(task.dag), hang, good])
    right, lost, late = MeasureError.OK, MeasureError.RUNTIME, MeasureError.RUN_TIMEOUT
    assert errors(results) == [right, lost, right, late, right], [result.message for result in results]
    assert all(0 < result.cost < inf for result in results if result.is_ok)
    raced = measurer.remeasure(task, [good, fault, default_gpu_state(task.dag)])
    assert errors(raced) == [right, lost, right]


def test_a_lack_of_memory_loses_its_own_schedule_only(measurer: PoolMeasurer) -> None:
    task = sums_of_products()
    inlined = per_element(LoopState.initial(task.dag).compute_inline("outer"), "sums")
    apart = per_element(per_element(LoopState.initial(task.dag), "outer"), "sums")
    results = measurer.measure(task, [apart, inlined])
    assert errors(results) == [MeasureError.OUT_OF_MEMORY, MeasureError.OK], [
        result.message for result in results
    ]


def test_what_is_no_schedule_for_a_gpu_is_not_run(measurer: PoolMeasurer) -> None:
    task = doubled()
    refused = LoopState.initial(task.dag).bind("Y", 0, "threadIdx.y")
    plain = LoopState.initial(task.dag)
    results = measurer.measure(task, [refused, plain])
    assert errors(results) == [MeasureError.INSTANTIATION, MeasureError.OK]


def test_without_a_gpu_each_schedule_says_so(measurer: PoolMeasurer, monkeypatch: pytest.MonkeyPatch) -> None:
    task = doubled()
    with machine_without_driver(), PoolMeasurer.open(Isa.host(), workers=1) as other:
        (result,) = other.measure(task, [in_blocks(task, GOOD_BLOCKS)])
    assert result.error is MeasureError.COMPILE
    assert "there is no NVIDIA driver here" in result.message


def test_a_search_on_a_gpu_measures_and_stores_its_schedules(measurer: PoolMeasurer, tmp_path: Path) -> None:
    with Database.open(tmp_path / "measurements.db") as database:
        _search_and_store(measurer, ScheduleDatabase(database, this_host()))


def _search_and_store(measurer: PoolMeasurer, kept: ScheduleDatabase) -> None:
    task = gpu_task(batched_product((), 24, 20, 16))
    noted = replace(measurer, on_measured=(kept.keep,))
    policy = gpu_policy(task, noted, options=FEW, on_confirmed=(kept.keep,))
    best = policy.search(TuningOptions(num_measure_trials=6, num_measures_per_round=3))
    assert best is not None
    assert 0 < policy.best_cost < inf
    records = kept.records(task)
    assert len(records) == policy.trials == 6
    assert sum(record.result.error_no == 0 for record in records) > 1
    on_cpu = replace(task, hardware=HardwareParams(task.hardware.num_cores))
    assert not kept.records(on_cpu)


@pytest.mark.usefixtures("gpu_machine")
def test_tune_searches_on_the_gpu_of_a_task(tmp_path: Path) -> None:
    task, log = gpu_task(chain((9, 40))), tmp_path / "log.json"
    best = tune(task, TuningOptions(num_measure_trials=3, num_measures_per_round=3), log=log)
    assert best is not None
    assert "blockIdx.x" in str(best)
    records = load_records(log)
    assert len(records) >= 3
    assert all(record.result.error_no == 0 for record in records)
