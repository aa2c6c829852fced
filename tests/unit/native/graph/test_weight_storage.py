"""Weights in fewer bytes: which ones, how far off they are, and that products stay within that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.unit.native.graph.run_plan import run_plan

from intarsia.ir import DType, Function, parser
from intarsia.native.graph import PlanOptions, RegionPlan, WeightStorage, plan_region
from intarsia.native.graph.weight_storage import stored_weight
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import scheduled
from intarsia.op import infer_types
from intarsia.target.cache_sizes import CacheSizes
from intarsia.target.machine_model import MachineModel

Array = npt.NDArray[Any]
HOST = Isa.host()
# The sizes and costs of Zen 3, whatever this machine has.
ISA = replace(HOST, machine=MachineModel(memory_bandwidth=6.0 * HOST.vector_bytes / 32))
DEPTH, COLUMNS = 512, 600
NARROW = [storage for storage in WeightStorage if storage is not WeightStorage.F32]
narrow = pytest.mark.parametrize("storage", NARROW, ids=lambda storage: storage.value)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def planned(text: str, storage: WeightStorage, *constants: Array, isa: Isa = ISA) -> RegionPlan:
    """The plan of a program's main; the text refers to constants as meta[Constant][i]."""
    function = infer_types(parser.parse_module(text, constants))["main"]
    assert isinstance(function, Function)
    return plan_region(function, isa, PlanOptions(weights=storage))


def product(rows: int, depth: int = DEPTH) -> str:
    """A program with one matrix product."""
    return f"def @main(%x: Tensor[({rows}, {depth}), float32]) {{ MatMul(%x, meta[Constant][0]) }}"


def read_types(plan: RegionPlan) -> set[DType]:
    """The element types of all matrices that kernels are given."""
    arrays = (array for kernel in plan.kernels for array in kernel.constants.values())
    return {DType.of(array) for array in arrays if array.ndim == 2}


@narrow
@pytest.mark.parametrize("channel", [0, 1], ids=["rows", "columns"])
def test_an_element_is_off_by_no_more_than_the_storage_says(storage: WeightStorage, channel: int) -> None:
    weight = numbers(64, 96) * np.logspace(-3, 3, 96, dtype=np.float32)
    weight[:, 5] = weight[7] = 0
    stored = stored_weight(weight, storage, channel)
    assert stored is not None
    found = stored.array.astype(np.float64)
    if stored.scale is not None:
        found *= np.expand_dims(stored.scale.astype(np.float64), 1 - channel)
    largest = np.abs(weight).max(axis=1 - channel, keepdims=True)
    assert (np.abs(found - weight) <= storage.relative_error * largest).all()
    assert (found[weight == 0] == 0).all()


@narrow
def test_the_stated_error_is_no_more_than_twice_what_is_found(storage: WeightStorage) -> None:
    weight = numbers(512, 4) * np.float32(0.01)
    weight[0] = 1
    weight[1:] += np.float32(0.98)
    stored = stored_weight(weight, storage, 1)
    assert stored is not None
    found = stored.array * (1 if stored.scale is None else stored.scale)
    largest = float(np.abs(found.astype(np.float64) - weight).max() / np.abs(weight).max())
    assert storage.relative_error / 4 < largest <= storage.relative_error


@pytest.mark.parametrize(
    ("value", "refusing"),
    [
        (70000.0, {WeightStorage.F16}),
        (3e-5, {WeightStorage.F16}),
        (1e-39, set(NARROW)),
        (np.inf, set(NARROW)),
        (np.nan, set(NARROW)),
    ],
    ids=["beyond-float16", "small", "denormal", "infinity", "nan"],
)
def test_what_a_type_cannot_hold_stays_as_it_is(value: float, refusing: set[WeightStorage]) -> None:
    weight = numbers(4, 4)
    weight[:, 2] = value
    assert {storage for storage in NARROW if stored_weight(weight, storage, 1) is None} == refusing


@pytest.mark.quick_cases(4)
@narrow
@pytest.mark.parametrize(
    ("rows", "expression"),
    [
        (1, "MatMul(%x, meta[Constant][0])"),
        (3, "Relu(Add(MatMul(%x, meta[Constant][0]), meta[Constant][1]))"),
        (8, "Gemm(%x, meta[Constant][0], meta[Constant][1], alpha=0.5, beta=2.0)"),
        (1, "Gemm(%x, meta[Constant][2], meta[Constant][1], transB=1)"),
    ],
    ids=["plain", "epilogue", "scaled", "transposed"],
)
def test_products_are_as_good_as_their_weights(storage: WeightStorage, rows: int, expression: str) -> None:
    weight, bias, x = numbers(DEPTH, COLUMNS), numbers(COLUMNS), numbers(rows, DEPTH)
    text = f"def @main(%x: Tensor[({rows}, {DEPTH}), float32]) {{ {expression} }}"
    plan = planned(text, storage, weight, bias, np.ascontiguousarray(weight.T))
    assert read_types(plan) == {storage.dtype}
    (found,) = run_plan(plan, [x], ISA)
    scale, offset = (0.5, 2.0) if "alpha" in text else (1.0, 1.0 if "[1]" in text else 0.0)
    expected = scale * (x.astype(np.float64) @ weight.astype(np.float64)) + offset * bias
    expected = np.maximum(expected, 0) if "Relu" in text else expected
    size = np.abs(x.astype(np.float64)).sum(axis=1, keepdims=True) * np.abs(weight).max(axis=0)
    bound = scale * size * (storage.relative_error + DEPTH * 2.0**-24) + 1e-6
    assert (np.abs(found - expected) <= bound).all()


@narrow
def test_they_are_packed_as_the_kernel_reads_them(storage: WeightStorage) -> None:
    (kernel,) = planned(product(1), storage, numbers(DEPTH, COLUMNS)).kernels
    (packing,) = scheduled(kernel.dag, ISA, 1).packings
    assert kernel.constants[packing.tensor_name].dtype == storage.dtype.numpy
    assert packing.shape == (DEPTH, COLUMNS)


@pytest.mark.parametrize(
    ("rows", "depth", "storage"),
    [(9, DEPTH, WeightStorage.F16), (1, 32, WeightStorage.F16), (1, DEPTH, WeightStorage.F32)],
    ids=["many-rows", "small", "by-default"],
)
def test_others_stay_in_float32(rows: int, depth: int, storage: WeightStorage) -> None:
    assert read_types(planned(product(rows, depth), storage, numbers(depth, COLUMNS))) == {DType.FLOAT32}


def test_a_weight_that_two_products_read_is_stored_once() -> None:
    text = f"""
        def @main(%x: Tensor[(1, {DEPTH}), float32], %y: Tensor[(2, {DEPTH}), float32]) {{
          (MatMul(%x, meta[Constant][0]), MatMul(%y, meta[Constant][0]))
        }}
    """
    plan = planned(text, WeightStorage.INT8, numbers(DEPTH, COLUMNS))
    first, second = (kernel.constants["s0"] for kernel in plan.kernels)
    assert first is second


def test_a_slow_memory_stores_weights_of_more_rows() -> None:
    slow = replace(ISA, machine=replace(ISA.machine, memory_bandwidth=ISA.machine.memory_bandwidth / 2))
    text, weight = product(16), numbers(DEPTH, COLUMNS)
    assert DType.FLOAT16 not in read_types(planned(text, WeightStorage.F16, weight))
    assert DType.FLOAT16 in read_types(planned(text, WeightStorage.F16, weight, isa=slow))


def test_a_large_cache_keeps_weights_in_float32() -> None:
    large = replace(ISA, machine=replace(ISA.machine, caches=CacheSizes(second=1 << 20)))
    plan = planned(product(1), WeightStorage.F16, numbers(DEPTH, COLUMNS), isa=large)
    assert DType.FLOAT16 not in read_types(plan)
