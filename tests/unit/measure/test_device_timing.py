"""Parts of programs that are timed on a GPU by its events, and faults that lose one candidate only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.gpu_on_cpu import at_hand
from tests.gpu_on_cpu.fake_gpu import fake_number
from tests.gpu_on_cpu.fake_machine import machine_with_gpus
from tests.unit.measure.quick_testbed import HOST, POLICY

import intarsia as ia
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.device_timing import device_call, is_timed_on_device, timed_on_device
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.sized_calls import Turns, sized_calls, time_calls
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.timing.clock import MONOTONIC_CLOCK
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.passes import InferType
from intarsia.runtime.cuda.cuda_clock import CudaClock
from intarsia.runtime.cuda.resident_program import ResidentProgram
from intarsia.support.errors import UsageError
from intarsia.target import Target

GPU = Target("cuda -toolchain=native")
X = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def _one_gpu() -> Iterator[None]:
    with machine_with_gpus():
        yield


def typed(text: str) -> IRModule:
    return InferType()(parse_module(text))


def product() -> IRModule:
    return typed("def @main(%x: Tensor[(8, 8), float32]) { %0 = MatMul(%x, %x); (%0, Exp(%0)) }")


def test_only_targets_of_gpus_are_timed_there() -> None:
    host = Target("cpu -toolchain=native")
    assert timed_on_device(host) is host
    assert is_timed_on_device(timed_on_device(GPU))
    assert not is_timed_on_device(GPU)
    assert str(timed_on_device(GPU)) == "cuda -toolchain=native -timed_on_device=true"


def test_a_call_copies_nothing_and_computes_the_same() -> None:
    with ia.build(product(), timed_on_device(GPU)) as exe:
        right = exe.run_flat(X)
        program = ResidentProgram(exe, [X])
        before = fake_number("fake_uploaded_bytes")
        for _ in range(3):
            program()
        assert fake_number("fake_uploaded_bytes") == before
        for result, expected in zip(program.results(), right, strict=True):
            np.testing.assert_array_equal(result, expected)


def test_the_target_decides_on_the_clock(tmp_path: Path) -> None:
    folder = WorkloadFolder.write(Workload(product()), tmp_path)
    with ia.build(product(), timed_on_device(GPU)) as exe:
        calls = sized_calls(folder, exe)
        assert isinstance(calls[0].clock, CudaClock)
        assert all(seconds > 0 for seconds in time_calls(calls, POLICY))
        assert Turns.warmed_up(calls, POLICY).take()[0] > 0
    with ia.build(product(), GPU) as exe:
        assert sized_calls(folder, exe)[0].clock is MONOTONIC_CLOCK
        assert device_call(exe, [X]) is None


def test_a_program_with_other_kernels_is_refused() -> None:
    with (
        ia.build(product(), "native") as host,
        pytest.raises(UsageError, match="only a program whose kernels are all for GPUs"),
    ):
        ResidentProgram(host, [X])


def rows(count: int, length: int = 128) -> IRModule:
    """Softmax of rows: a block of the GPU for each."""
    return typed(f"def @main(%x: Tensor[({count}, {length}), float32]) {{ Softmax(%x, axis=-1) }}")


@pytest.mark.slow
@pytest.mark.parametrize("target", [GPU, timed_on_device(GPU)], ids=str)
def test_a_fault_loses_one_candidate_only(target: Target) -> None:
    too_large = at_hand.GPU_BYTES // 4
    programs = [rows(8), rows(at_hand.FAULT_BLOCKS), rows(9), rows(1, too_large), rows(10)]
    inputs = [MeasureInput(Workload(mod, f"rows {at}"), target, WHOLE) for at, mod in enumerate(programs)]
    limits = TestbedLimits(policy=POLICY, turn=POLICY)
    with LocalTestbed.open(HOST, workers=1, limits=limits, preload=(at_hand.__name__,)) as testbed:
        measurer = Measurer(testbed)
        results = [result for item in inputs for result in measurer.measure([item])]
    assert [None if result is None else result.error for result in results] == [
        MeasureError.OK,
        MeasureError.RUNTIME,
        MeasureError.OK,
        MeasureError.OUT_OF_MEMORY,
        MeasureError.OK,
    ]
    fault, memory = results[1], results[3]
    assert fault is not None
    assert "the GPU is lost to this process: " in fault.message
    assert memory is not None
    assert "CUDA_ERROR_OUT_OF_MEMORY" in memory.message
