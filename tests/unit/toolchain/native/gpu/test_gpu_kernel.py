"""Native programs for GPUs as kernels of the toolchain, on a fake driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.gpu_on_cpu.fake_gpu import fake_number, used_bytes
from tests.gpu_on_cpu.fake_machine import machine_with_gpus, machine_without_driver

import intarsia as ia
from intarsia.collage.device_placement.device_program import DeviceProgram
from intarsia.collage.device_placement.placed_on_devices import placed_on_devices
from intarsia.frontend.zoo import build_model
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.passes import InferType, MergeCompilerRegions, PartitionGraph, PlanDevices
from intarsia.runtime.cuda.cuda_kernel import CudaKernel, opened_gpu
from intarsia.runtime.executable import Executable
from intarsia.support.errors import CompileError, ExecutionError, MissingToolchainError, UsageError
from intarsia.toolchain.native.gpu.gpu_kernel import model_for

TARGET = "cuda -toolchain=native"
BRANCHES = """#[version = "0.1"]
def @main(%x: Tensor[(8, 8), float32]) {
  %0 = MatMul(%x, %x);
  %1 = Softmax(%0, axis=-1);
  %2 = Tanh(%x);
  (Add(%1, %2), %0)
}"""
X = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def _one_gpu() -> Iterator[None]:
    with machine_with_gpus():
        yield


def branches() -> IRModule:
    return InferType()(parse_module(BRANCHES))


def listed(values: object) -> list[npt.NDArray[Any]]:
    return list(values) if isinstance(values, (list, tuple)) else [np.asarray(values)]


def inputs_of(exe: Executable, seed: int = 0) -> list[npt.NDArray[Any]]:
    rng = np.random.default_rng(seed)
    arrays = []
    for info in exe.inputs:
        shape = tuple(size for size in info.shape or () if isinstance(size, int))
        dtype = np.dtype(str(info.dtype))
        drawn = rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, 100, shape)
        arrays.append(drawn.astype(dtype))
    return arrays


def check(exe: Executable, mod: IRModule) -> None:
    """Compare an executable with native on the CPU, twice, in new arrays and in given ones."""
    reference = ia.build(mod, "native")
    for seed in range(2):
        inputs = inputs_of(exe, seed)
        expected = listed(reference(*inputs))
        for result, right in zip(listed(exe(*inputs)), expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-5)
        given = [np.zeros_like(right) for right in expected]
        exe.run_into(inputs, given)
        for result, right in zip(given, expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-5)


def test_a_program_is_built_for_a_gpu() -> None:
    exe = ia.build(branches(), TARGET)
    (kernel,) = exe.kernels
    assert isinstance(kernel, CudaKernel)
    assert kernel.source.target == TARGET
    check(exe, branches())


def test_a_closed_program_leaves_no_memory_behind() -> None:
    before = used_bytes()
    with ia.build(branches(), TARGET) as exe:
        exe(X)
        modules = fake_number("fake_modules")
        assert modules > 0
    assert fake_number("fake_modules") == modules - 1
    opened_gpu().pool.trim()
    assert used_bytes() == before


def test_an_artifact_is_compiled_for_the_gpu_that_loads_it(tmp_path: Path) -> None:
    exe = ia.build(branches(), TARGET)
    exe.save(tmp_path / "program")
    loaded = ia.load(tmp_path / "program")
    for result, right in zip(listed(loaded(X)), listed(exe(X)), strict=True):
        np.testing.assert_array_equal(result, right)


def test_clones_share_code_and_no_memory() -> None:
    exe = ia.build(branches(), TARGET)
    clone = exe.clone()
    first, second = listed(clone(X)), listed(exe(X * 2))
    np.testing.assert_allclose(first[1], X @ X, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second[1], 4 * (X @ X), rtol=1e-5, atol=1e-6)
    clone.close()
    np.testing.assert_array_equal(listed(exe(X))[1], first[1])


def test_launches_are_profiled_by_events() -> None:
    profile = ia.build(branches(), TARGET).profile(X, repeats=2)
    rows = [row for row in profile.rows if row.kernel.nodes]
    assert rows
    assert all(row.seconds > 0 for row in rows)
    assert all(row.bound is None for row in profile.rows), "the roofline is the CPU's"
    assert "times of GPU kernels are those of its events" in str(profile)


def test_regions_are_on_both_devices() -> None:
    text = """#[version = "0.1"]
def @main(%x: Tensor[(8, 8), float32]) {
  %0 = MatMul(%x, %x);
  %1 = intarsia::on_device(%0) @device(cuda:0);
  %2 = Softmax(%1, axis=-1);
  %3 = intarsia::on_device(%2) @device(cuda:0);
  %4 = Tanh(%x);
  Add(%3, %4)
}"""
    mod = PlanDevices()(InferType()(parse_module(text)))
    with ia.build(mod, "native") as exe:
        assert exe.plan.devices == ("cpu:0", "cuda:0")
        targets = {kernel.source.target.partition(" -threads")[0] for kernel in exe.kernels}
        assert targets == {"cpu -toolchain=native", TARGET}
        product = X @ X
        exponential = np.exp(product - product.max(-1, keepdims=True))
        right = exponential / exponential.sum(-1, keepdims=True) + np.tanh(X)
        for _ in range(2):
            np.testing.assert_allclose(exe(X), right, rtol=1e-4, atol=1e-5)
        events = {(event.name, event.device) for event in exe.trace(X).events}
    assert {("copy from cpu:0", "cuda:0"), ("copy from cuda:0", "cpu:0")} <= events


def test_a_program_on_both_devices_is_profiled() -> None:
    planned = placed_on_devices(branches(), DEVICES, [0, 1, 0, 1, 0, 0])
    mod = PartitionGraph()(MergeCompilerRegions()(planned))
    profile = ia.build(mod).profile(X, repeats=2)
    native = [row for row in profile.rows if row.toolchain == "native"]
    assert {row.part for row in native} == set(ia.build(mod).kernel_names)
    assert all(row.seconds > 0 for row in profile.rows)
    assert "copy" in {row.toolchain for row in profile.rows}


def test_a_condition_on_a_gpu_chooses_a_branch() -> None:
    text = """#[version = "0.1"]
def @main(%x: Tensor[(8, 8), float32]) {
  %0 = ReduceSum(%x, keepdims=0);
  %1 = Greater(%0, float32(0.0));
  %2 = intarsia::on_device(%1) @device(cuda:0);
  if (%2) { Exp(%x) } else { Neg(%x) }
}"""
    mod = PlanDevices()(InferType()(parse_module(text)))
    with ia.build(mod, "native") as exe:
        assert "cuda:0" in exe.plan.devices
        positive, negative = np.abs(X), -np.abs(X)
        np.testing.assert_allclose(exe(positive), np.exp(positive), rtol=1e-5)
        np.testing.assert_allclose(exe(negative), -negative, rtol=1e-6)


DEVICES = (
    'VirtualDevice(cpu:0, target="cpu -toolchain=native -threads=1")',
    'VirtualDevice(cuda:0, target="cuda -toolchain=native")',
)


def divided(mod: IRModule, seed: int) -> IRModule:
    """The program with runs of operators in turn on both devices, as regions."""
    program = DeviceProgram.of(mod)
    assert program is not None
    rng = np.random.default_rng(seed)
    turns = rng.integers(0, 2, -(-len(program.placed) // 6)).tolist()
    assignment = [turns[number // 6] for number in range(len(program.placed))]
    planned = placed_on_devices(mod, DEVICES, assignment)
    return PartitionGraph()(MergeCompilerRegions()(planned))


@pytest.mark.parametrize(
    "name",
    [
        "mnist",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("bert_tiny", "gpt2_tiny")),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("squeezenet", "mobilenet_v2")),
    ],
)
def test_a_model_of_the_zoo_is_divided_between_cpu_and_gpu(name: str) -> None:
    mod = ia.from_onnx(build_model(name))
    check(ia.build(divided(mod, seed=2)), mod)


def test_without_a_driver() -> None:
    message = "toolchain 'native' is not usable on cuda here: there is no NVIDIA driver"
    with machine_without_driver(), pytest.raises(MissingToolchainError, match=message):
        ia.build(branches(), TARGET)


def test_what_a_program_refuses() -> None:
    exe = ia.build(branches(), TARGET)
    (kernel,) = exe.kernels
    assert isinstance(kernel, CudaKernel)
    gpu = opened_gpu()
    with pytest.raises(ExecutionError, match=r"x is float32\[3\]; expected float32\[8, 8\]"):
        kernel.run_on_gpu(gpu, [gpu.put(X[0, :3])], [None, None])
    with pytest.raises(ExecutionError, match="found 0 inputs; expected 1"):
        kernel.run_on_gpu(gpu, [], [None, None])
    exe.close()
    with pytest.raises(UsageError, match="the kernel is closed"):
        kernel.run_on_gpu(gpu, [gpu.put(X)], [None, None])


def test_code_is_for_the_capability_of_the_gpu() -> None:
    assert [model_for(capability) for capability in ((8, 0), (9, 0), (12, 0))] == ["sm_80", "sm_90a", "sm_80"]
    with pytest.raises(CompileError, match=r"compute capability 7\.5; expected 8\.0 or later"):
        model_for((7, 5))
