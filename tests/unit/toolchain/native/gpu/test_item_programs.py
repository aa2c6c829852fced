"""Programs for a batch of any size on a fake GPU, whose kernels are the LLVM IR for NVPTX on this CPU."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.gpu_on_cpu.fake_gpu import fake_number, used_bytes
from tests.gpu_on_cpu.fake_machine import machine_with_gpus

import intarsia as ia
from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.passes import InferType
from intarsia.runtime.cuda.cuda_kernel import opened_gpu
from intarsia.runtime.executable import Executable
from intarsia.support.errors import CompileError, ExecutionError

TARGET = "cuda -toolchain=native"
QUICK = {"chain", "products and a softmax"}
NUMBERS = (7, 1, 0, 64, 7, 131, 7)
"""Numbers of items; the same ones come again behind others."""
Array = npt.NDArray[Any]
PROGRAMS = {
    "chain": "def @main(%x: Tensor[(n, 9), float32]) { Tanh(Add(%x, float32(1.5))) }",
    "products and a softmax": (
        "def @main(%x: Tensor[(n, 64), float32], %w: Tensor[(64, 32), float32], %b: Tensor[(32,), float32]) "
        "{ %0 = Add(MatMul(%x, %w), %b); %1 = Softmax(%0, axis=-1); "
        "(%0, MatMul(%1, Transpose(%w, perm=[1, 0]))) }"
    ),
    "product of float16": (
        "def @main(%x: Tensor[(n, 24), float16], %w: Tensor[(24, 16), float16]) { Relu(MatMul(%x, %w)) }"
    ),
    "layer norm of rows of items": (
        "def @main(%x: Tensor[(n, 3, 40), float32], %s: Tensor[(40,), float32]) "
        "{ LayerNormalization(%x, %s, axis=-1) }"
    ),
    "rows that items have several of": (
        "def @main(%x: Tensor[(n, 3, 20), float32], %w: Tensor[(20, 10), float32]) { Relu(MatMul(%x, %w)) }"
    ),
    "softmax of long rows": "def @main(%x: Tensor[(n, 40000), float32]) { Softmax(%x, axis=-1) }",
    "convolution": (
        "def @main(%x: Tensor[(n, 3, 9, 9), float32], %w: Tensor[(4, 3, 3, 3), float32]) "
        "{ Relu(Conv(%x, %w)) }"
    ),
}


@pytest.fixture(autouse=True)
def _one_gpu() -> Iterator[None]:
    with machine_with_gpus():
        yield


def program(name: str) -> IRModule:
    return InferType()(parse_module(PROGRAMS[name]))


def inputs_of(exe: Executable, items: int, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [
        rng.standard_normal([size if isinstance(size, int) else items for size in info.shape or ()]).astype(
            str(info.dtype)
        )
        for info in exe.inputs
    ]


def listed(values: object) -> list[Array]:
    return list(values) if isinstance(values, (list, tuple)) else [np.asarray(values)]


def check(exe: Executable, reference: Executable, items: int, seed: int = 0) -> None:
    """Compare two executables for a number of items."""
    inputs = inputs_of(exe, items, seed)
    for result, right in zip(listed(exe(*inputs)), listed(reference(*inputs)), strict=True):
        assert (result.shape, result.dtype) == (right.shape, right.dtype)
        tolerance = 2e-3 if right.dtype == np.float16 else 1e-4
        np.testing.assert_allclose(result, right, rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PROGRAMS]
)
def test_a_program_computes_any_number_of_items(name: str) -> None:
    with ia.build(program(name), TARGET) as exe, ia.build(program(name), "reference") as reference:
        for seed, items in enumerate(NUMBERS):
            check(exe, reference, items, seed)


def test_weights_are_uploaded_once_for_all_numbers() -> None:
    with ia.build(program("products and a softmax"), TARGET) as exe:
        counts = []
        for items in (9, 9, 5, 9):
            inputs = inputs_of(exe, items)
            before = fake_number("fake_uploaded_bytes")
            exe(*inputs)
            counts.append(fake_number("fake_uploaded_bytes") - before - sum(array.nbytes for array in inputs))
        assert counts[1:] == [0, 48, 0], "six numbers that are new are 8 bytes each"


def test_memory_is_that_of_the_largest_number_and_is_freed() -> None:
    before = used_bytes()
    with ia.build(program("products and a softmax"), TARGET) as exe:
        for items in range(1, 40):  # more than are kept
            exe(*inputs_of(exe, items))
        exe(*inputs_of(exe, 4))
    opened_gpu().pool.trim()
    assert used_bytes() == before


def test_clones_and_profiles_run_any_number(tmp_path: Path) -> None:
    exe = ia.build(program("products and a softmax"), TARGET)
    exe.save(tmp_path / "program")
    with ia.build(program("products and a softmax"), "native") as reference:
        for other in (exe.clone(), ia.load(tmp_path / "program")):
            check(other, reference, 3)
            check(other, reference, 5)
    rows = [row for row in exe.profile(*inputs_of(exe, 3), repeats=2).rows if row.kernel.nodes]
    assert len(rows) == 3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_clones_run_in_threads_beside_each_other(seed: int) -> None:
    """All of them use the stream of one GPU, with recordings, growing arenas, and memory given back."""
    numbers = (3, 3, 3, 70, 3, 70, 70)
    mod = InferType()(
        parse_module("def @main(%x: Tensor[(n, 9), float32]) { Relu(Softmax(Tanh(%x), axis=-1)) }")
    )
    with (
        machine_with_gpus(seed=seed),
        ia.build(mod, TARGET) as exe,
        ia.build(mod, "reference") as reference,
    ):
        clones = exe.clones(3)
        given = [[inputs_of(exe, items, at) for items in numbers] for at in range(len(clones))]
        right = [[listed(reference(*arrays)) for arrays in calls] for calls in given]

        def run(at: int) -> list[list[Array]]:
            return [listed(clones[at](*arrays)) for arrays in given[at]]

        with ThreadPoolExecutor(len(clones)) as threads:
            results = list(threads.map(run, range(len(clones))))
        for clone in clones:
            clone.close()
    for calls, expected in zip(results, right, strict=True):
        for result, arrays in zip(calls, expected, strict=True):
            for array, other in zip(result, arrays, strict=True):
                np.testing.assert_allclose(array, other, rtol=1e-4, atol=1e-5)


def test_parameters_with_different_numbers_are_refused() -> None:
    text = "def @main(%x: Tensor[(n, 4), float32], %y: Tensor[(n, 4), float32]) { Add(%x, %y) }"
    with ia.build(InferType()(parse_module(text)), TARGET) as exe:
        (kernel,) = exe.kernels
        arrays = [np.zeros((items, 4), np.float32) for items in (2, 3)]
        with pytest.raises(ExecutionError, match=r"batches of \[2, 3\] items, expected one size"):
            kernel.run(arrays, [None])


def test_other_sizes_than_that_of_a_batch_are_refused() -> None:
    text = "def @main(%x: Tensor[(4, n), float32]) { Relu(%x) }"
    with pytest.raises(CompileError, match="axis 1 of parameter 'x' may have any size"):
        ia.build(InferType()(parse_module(text)), TARGET)
