"""Schedules measured on workers: right ones have costs, wrong ones and failures have none."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf
from random import Random

import numpy as np
import pytest
from tests.faulty_builds import HANGING, Fault, build_with_fault, with_fault
from tests.native_workloads import conv2d_nchw_bn_relu, matmul
from tests.searched_programs import small_sketches, small_task, task_of
from tests.unit.measure.quick_testbed import WORKLOAD

from intarsia.autoschedule.measuring import SCHEDULE_LIMITS, PoolMeasurer
from intarsia.autoschedule.population import sample_initial_population
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.ir import DType
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.measure_input import MeasureInput
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.schedules.kernel_timing import KernelTiming
from intarsia.measure.testbed import LendingTestbed, LocalTestbed
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import with_state
from intarsia.support.errors import ExecutionError, StoppedError
from intarsia.target import Target
from intarsia.toolchain.this_host import this_host

PRODUCT = task_of(matmul(16, 16, 16), cores=2)
TARGET = Target("cpu -toolchain=native")


def sampled(task: SearchTask, count: int, seed: int = 0) -> tuple[LoopState, ...]:
    """Random programs of a task."""
    return sample_initial_population(task, generate_sketches(task), count, Random(seed))


def errors(found: list[MeasureResult]) -> list[MeasureError]:
    """How each ended."""
    return [each.error for each in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["matmul", "conv2d_nchw_bn_relu", "softmax_nm", "layer_norm", "argmax_nm", "max_pool2d", "odd_conv"],
)
def test_every_sampled_schedule_is_right_and_has_costs(measurer: PoolMeasurer, name: str) -> None:
    task = replace(small_task(name), hardware=HardwareParams(2))
    states = sample_initial_population(task, small_sketches(name), 6, Random(3))
    found = measurer.measure(task, [LoopState.initial(task.dag), *states])
    assert errors(found) == [MeasureError.OK] * (len(states) + 1), [each.message for each in found]
    assert all(0 < each.cost < inf and each.wall_seconds > 0 for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("option", list(LayoutRewriteOption), ids=lambda option: option.name)
def test_constants_are_packed_as_the_schedule_reads_them(
    measurer: PoolMeasurer, option: LayoutRewriteOption
) -> None:
    task = replace(PRODUCT, layout_rewrite_option=option)
    states = sampled(task, 6, seed=5)
    packed = [with_state(task.dag, state, option).packings for state in states]
    assert any(packed) == (option is LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED)
    found = measurer.measure(task, states)
    assert errors(found) == [MeasureError.OK] * 6, [each.message for each in found]


@pytest.mark.processes
def test_a_fault_costs_its_own_schedule_only(measurer: PoolMeasurer) -> None:
    faults = {
        Fault.BUILD_RAISES: (MeasureError.UNKNOWN, "ArithmeticError: the build lost count"),
        Fault.BUILD_ABORTS: (MeasureError.CRASH, "SIGABRT"),
        Fault.BUILD_TAKES_ALL_MEMORY: (MeasureError.OUT_OF_MEMORY, "memory"),
        Fault.OTHER_LOOPS: (MeasureError.WRONG_ANSWER, 'output "C"'),
        Fault.WRITES_NOTHING: (MeasureError.WRONG_ANSWER, 'output "C"'),
        Fault.WRITES_BEHIND: (MeasureError.WRONG_ANSWER, 'memory around output "C" was written'),
        Fault.RUN_CRASHES: (MeasureError.CRASH, "SIGSEGV"),
        Fault.DAMAGED_CODE: (MeasureError.LOAD, "object code"),
    }
    good, init = sampled(PRODUCT, len(faults), seed=7), LoopState.initial(PRODUCT.dag)
    bad = [with_fault(init, "C", each) for each in faults]
    mixed = [state for pair in zip(bad, good, strict=True) for state in pair]
    found = measurer.measure(PRODUCT, mixed)
    assert errors(found)[::2] == [error for error, _ in faults.values()]
    assert errors(found)[1::2] == [MeasureError.OK] * len(good)
    for each, (_, words) in zip(found[::2], faults.values(), strict=True):
        assert words in each.message
        assert each.costs == ()
        assert each.cost == inf


@pytest.mark.slow
def test_what_hangs_is_ended() -> None:
    options = replace(SCHEDULE_LIMITS, build_seconds=3.0, run_seconds=3.0)
    init = LoopState.initial(PRODUCT.dag)
    states = [with_fault(init, "C", each) for each in (Fault.BUILD_HANGS, Fault.RUN_HANGS)]
    with PoolMeasurer.open(Isa.host(), options, workers=2, build=build_with_fault) as measurer:
        found = measurer.measure(PRODUCT, [*states, init])
    assert errors(found) == [MeasureError.BUILD_TIMEOUT, MeasureError.RUN_TIMEOUT, MeasureError.OK]
    assert "its limit of 3 s" in found[0].message


def test_what_is_no_program_is_not_instantiated(measurer: PoolMeasurer) -> None:
    open_length = LoopState.initial(PRODUCT.dag).split("C", "i", [None])
    other = LoopState.initial(ComputeDAG(conv2d_nchw_bn_relu())).split("relu", 0, [1])
    found = measurer.measure(PRODUCT, [open_length, other])
    assert errors(found) == [MeasureError.INSTANTIATION] * 2
    assert all(each.message for each in found)


@pytest.mark.slow
def test_too_much_code_is_not_compiled() -> None:
    options = replace(SCHEDULE_LIMITS, most_stores=4)
    state = LoopState.initial(PRODUCT.dag).unroll("C", "j")
    with PoolMeasurer.open(Isa.host(), options, workers=1) as measurer:
        found = measurer.measure(PRODUCT, [LoopState.initial(PRODUCT.dag), state])
    assert errors(found) == [MeasureError.OK, MeasureError.COMPILE]
    assert re.fullmatch(r"these loops come to \d+ stores, more than 4", found[1].message)


@pytest.mark.processes
def test_lent_workers_measure_programs_and_schedules_by_turns() -> None:
    program = MeasureInput(WORKLOAD, Target("cpu -toolchain=reference"), WHOLE)
    states = sampled(PRODUCT, 2, seed=3)
    with LocalTestbed.open(this_host(), workers=1) as testbed:
        assert isinstance(testbed, LendingTestbed)
        pools = testbed.workers.builders, testbed.workers.runner
        for _ in range(2):
            with PoolMeasurer.open(Isa.host(), lent=testbed.lend_workers()) as measurer:
                workers = measurer.testbed.workers
                assert (workers.builders, workers.runner) == pools
                assert errors(measurer.measure(PRODUCT, states)) == [MeasureError.OK] * 2
                assert measurer.testbed.folder.path.exists()
            assert not measurer.testbed.folder.path.exists()
            (measured,) = testbed.measure([program])
            assert measured.outcome.error is MeasureError.OK


def test_the_best_are_measured_in_turns(measurer: PoolMeasurer) -> None:
    states = sampled(PRODUCT, 4, seed=9)
    found = measurer.remeasure(PRODUCT, states)
    assert errors(found) == [MeasureError.OK] * 4
    assert all(7 <= len(each.costs) <= 21 for each in found)
    assert measurer.remeasure(PRODUCT, []) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "option", [LayoutRewriteOption.NO_REWRITE, LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED]
)
def test_calls_can_take_turns_on_copies_of_their_operands(option: LayoutRewriteOption) -> None:
    task = replace(PRODUCT, layout_rewrite_option=option)
    states = sampled(task, 3, seed=5)
    with PoolMeasurer.open(
        Isa.host(), replace(SCHEDULE_LIMITS, kernel=KernelTiming(operand_bytes=20_000)), workers=1
    ) as measurer:
        assert errors(measurer.measure(task, states)) == [MeasureError.OK] * 3
        assert errors(measurer.remeasure(task, states)) == [MeasureError.OK] * 3


@pytest.mark.processes
def test_one_that_crashes_in_the_turns_harms_no_other(measurer: PoolMeasurer) -> None:
    init = LoopState.initial(PRODUCT.dag)
    faults = (Fault.RUN_CRASHES, Fault.BUILD_ABORTS, Fault.WRITES_NOTHING)
    good = sampled(PRODUCT, 2, seed=11)
    found = measurer.remeasure(PRODUCT, [good[0], *(with_fault(init, "C", each) for each in faults), good[1]])
    wrong = [MeasureError.CRASH, MeasureError.CRASH, MeasureError.WRONG_ANSWER]
    assert errors(found) == [MeasureError.OK, *wrong, MeasureError.OK]


def test_a_wrong_one_in_the_turns_has_no_costs(measurer: PoolMeasurer) -> None:
    init = LoopState.initial(PRODUCT.dag)
    found = measurer.remeasure(PRODUCT, [with_fault(init, "C", Fault.OTHER_LOOPS), init])
    assert errors(found) == [MeasureError.WRONG_ANSWER, MeasureError.OK]
    assert found[0].costs == ()


def test_each_measurement_is_told_at_once_and_kept_when_measuring_stops(measurer: PoolMeasurer) -> None:
    told: list[tuple[LoopState, MeasureResult]] = []
    stopping = replace(
        measurer,
        on_measured=(lambda _, states, found: told.extend(zip(states, found, strict=True)),),
        should_stop=lambda: len(told) == 3,
        wall_clock=lambda: 1234.5,
    )
    states = sampled(PRODUCT, 6, seed=13)
    with pytest.raises(StoppedError):
        stopping.measure(PRODUCT, states)
    assert [state for state, _ in told] == list(states[:3])
    assert all(each.error is MeasureError.OK and each.timestamp == 1234.5 for _, each in told)


@pytest.mark.slow
def test_workers_that_are_stopped_say_nothing_of_schedules() -> None:
    hanging = with_fault(LoopState.initial(PRODUCT.dag), "C", Fault.BUILD_HANGS)
    with PoolMeasurer.open(Isa.host(), workers=1, build=build_with_fault) as measurer:
        folder = measurer.testbed.folder.path / "workloads"

        def stop() -> None:
            while not list(folder.glob(f"*/{HANGING}")):
                time.sleep(0.01)
            measurer.testbed.workers.builders.stop()

        with ThreadPoolExecutor(1) as other:
            stopped = other.submit(stop)
            with pytest.raises(StoppedError, match="what was measured before is kept"):
                measurer.measure(PRODUCT, [hanging])
            stopped.result()


def _picked() -> ComputeDAG:
    """Rows of a table by number."""
    table, rows = te.placeholder((3, 8), name="table"), te.placeholder((5,), DType.INT64, name="rows")
    return ComputeDAG((table, rows, te.compute((5, 8), lambda i, j: table[rows[i], j] * 2.0, name="picked")))


def test_given_contents_are_what_kernels_run_on(measurer: PoolMeasurer) -> None:
    dag = _picked()
    rows = np.array([2, 0, 1, 2, 2], np.int64)
    base = SearchTask.of_dag(dag, TARGET, HardwareParams(1))
    task = replace(base, task_inputs={"rows": rows})
    found = measurer.measure(task, [LoopState.initial(dag), LoopState.initial(dag).split("picked", "i", [2])])
    assert errors(found) == [MeasureError.OK] * 2
    assert measurer.workload(task).digest != measurer.workload(base).digest


def test_equal_tasks_are_prepared_once(measurer: PoolMeasurer) -> None:
    again = task_of(matmul(16, 16, 16), cores=2)
    assert measurer.workload(again).digest == measurer.workload(PRODUCT).digest
    folders = measurer.testbed.folder.path / "workloads"
    measurer.measure(PRODUCT, [LoopState.initial(PRODUCT.dag)])
    before = set(folders.iterdir())
    measurer.measure(again, [LoopState.initial(again.dag)])
    assert set(folders.iterdir()) == before


@pytest.mark.slow
def test_without_a_reference_result_nothing_is_measured() -> None:
    options = replace(SCHEDULE_LIMITS, reference_seconds=1e-6)
    problem = "the reference result of a kernel cannot be"
    with (
        PoolMeasurer.open(Isa.host(), options, workers=1) as measurer,
        pytest.raises(ExecutionError, match=problem),
    ):
        measurer.measure(PRODUCT, [LoopState.initial(PRODUCT.dag)])
