"""Random schedules for GPUs over drawn computations, and whether their kernels compute the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
from tests.gpu_on_cpu.kernel_checks import assert_close, interpreted, on_this_cpu
from tests.native_workloads import (
    Tensors,
    conv2d_nchw_bn_relu,
    depthwise_conv2d,
    layer_norm,
    max_pool2d,
    min_nm,
    parallel_matmul,
    softmax_nm,
)
from tests.tir_checks import in_module

from intarsia.autoschedule.mutation import mutate
from intarsia.autoschedule.population import sample_program
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import HardwareParams, SearchTask, SpaceOptions
from intarsia.ir import DType, PrimFunc
from intarsia.ir.verify import verify
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import lower_to_kernels
from intarsia.native.gpu.static_cost import FACTS
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower_naive
from intarsia.native.te.operators.integer_sums import product_of_words
from intarsia.target.target import Target

TARGET = Target("cuda -toolchain=native")
WIDE = DType.FLOAT32


def gpu_task(tensors: Tensors) -> SearchTask:
    """The task of tensors on a GPU."""
    return SearchTask.of_dag(ComputeDAG(tensors), TARGET, HardwareParams.of_gpu(FACTS["sm_80"]))


def batched_product(
    batch: tuple[int, ...], rows: int, columns: int, depth: int, dtype: DType = WIDE, ending: str = ""
) -> Tensors:
    """Products of matrices, with a sum in float32, and what may follow them element by element."""
    a = te.placeholder((*batch, rows, depth), dtype=dtype, name="A")
    b = te.placeholder((*batch, depth, columns), dtype=dtype, name="B")
    bias = te.placeholder((columns,), name="bias")
    k = te.reduce_axis(depth, "rk")

    def element(*at: Any) -> Any:
        *outer, i, j = at
        factors = a[(*outer, i, k)], b[(*outer, k, j)]
        first, second = (each if dtype is WIDE else each.astype(WIDE) for each in factors)
        return te.sum(first * second, axis=k)

    c = te.compute((*batch, rows, columns), element, name="C")
    if not ending:
        return a, b, c
    d = te.compute(c.shape, lambda *at: c[at] + bias[at[-1]], name="D")
    if ending == "bias":
        return a, b, bias, d
    return a, b, bias, te.compute(c.shape, lambda *at: te.maximum(d[at], te.const(0.0)), name="E")


def padded_sums(rows: int, length: int, taps: int) -> Tensors:
    """Sums of windows of a row that is scaled first, then a chain of element-wise operations."""
    x, scale = te.placeholder((rows, length), name="X"), te.placeholder((rows, 1), name="scale")
    scaled = te.compute((rows, length), lambda i, j: x[i, j] * scale[i, 0], name="scaled")
    k = te.reduce_axis(taps, "k")
    out = length - taps + 1
    sums = te.compute((rows, out), lambda i, j: te.sum(scaled[i, j + k.expression], axis=k), name="sums")
    shifted = te.compute((rows, out), lambda i, j: sums[i, j] + scale[i, 0], name="shifted")
    return x, scale, te.compute((rows, out), lambda i, j: te.maximum(shifted[i, j], te.const(0.0)), name="Y")


def chain(shape: tuple[int, ...]) -> Tensors:
    """Element-wise operations, one of which is read twice."""
    x, y = te.placeholder(shape, name="X"), te.placeholder(shape[-1:], name="Y")
    total = te.compute(shape, lambda *at: x[at] + y[at[-1]], name="total")
    powers = te.compute(shape, lambda *at: te.exp(total[at] * 0.25), name="powers")
    return x, y, te.compute(shape, lambda *at: powers[at] - total[at], name="Z")


def reduction(shape: tuple[int, ...], reduced: int) -> Tensors:
    """Sums over the last axes."""
    x = te.placeholder(shape, name="X")
    axes = [te.reduce_axis(extent, f"k{number}") for number, extent in enumerate(shape[-reduced:])]
    out = shape[:-reduced]
    return x, te.compute(out, lambda *at: te.sum(x[(*at, *axes)], axis=axes), name="Y")


def _size(rng: Random, most: int) -> int:
    return rng.choice((rng.randint(1, most), rng.choice((1, 2, 4, 8, 16, 32, 64))))


def _product(rng: Random, batch: tuple[int, ...], most: int, endings: tuple[str, ...]) -> Tensors:
    rows, columns, depth = (_size(rng, most) for _ in range(3))
    return batched_product(batch, rows, columns, depth, ending=rng.choice(endings))


def _product_of_halves(rng: Random) -> Tensors:
    batch, dtype = rng.choice(((), (2,))), rng.choice((DType.FLOAT16, DType.BFLOAT16))
    rows, columns, depth = rng.randint(8, 40), rng.randint(1, 40), rng.randint(1, 40)
    return batched_product(batch, rows, columns, depth, dtype, rng.choice(("", "relu")))


def _product_of_bytes(rng: Random) -> Tensors:
    """A product of words of four bytes, and what makes float32 of it."""
    rows, columns, depth = rng.randint(8, 40), rng.randint(1, 40), rng.randint(1, 20)
    x = te.placeholder((rows, depth), dtype=DType.INT32, name="X")
    w = te.placeholder((depth, columns), dtype=DType.INT32, name="W")
    sums = product_of_words(x, w, "sums")
    if rng.random() < 0.5:
        return x, w, sums
    scaled = te.compute(sums.shape, lambda i, j: sums[i, j].astype(WIDE) * 0.5, name="scaled")
    return x, w, scaled


FAMILIES: dict[str, Callable[[Random], Tensors]] = {
    "product": lambda rng: _product(rng, (), 60, ("", "bias", "relu")),
    "batched product": lambda rng: _product(rng, (rng.randint(1, 4),), 24, ("", "relu")),
    "product of halves": _product_of_halves,
    "product of bytes": _product_of_bytes,
    "two products": lambda rng: parallel_matmul(rng.randint(2, 24)),
    "convolution": lambda rng: conv2d_nchw_bn_relu(
        *(1, rng.randint(3, 9), rng.randint(3, 9), rng.randint(1, 9), rng.randint(1, 9)),
        *(rng.choice((1, 3)), rng.randint(1, 2), rng.randint(0, 1)),
    ),
    "depthwise convolution": lambda rng: depthwise_conv2d(
        rng.randint(1, 6), rng.randint(3, 11), rng.randint(1, 2)
    ),
    "pool": lambda rng: max_pool2d(1, rng.randint(3, 9), rng.randint(3, 9), rng.randint(1, 6)),
    "reduction": lambda rng: reduction(
        *rng.choice((((rng.randint(1, 6), rng.randint(1, 700)), 1), ((3, rng.randint(1, 9), 8, 9), 2)))
    ),
    "least": lambda rng: min_nm(rng.randint(1, 9), rng.randint(1, 300)),
    "windows": lambda rng: padded_sums(rng.randint(1, 9), rng.randint(70, 200), rng.choice((3, 64, 70))),
    "softmax": lambda rng: softmax_nm(rng.randint(1, 9), rng.randint(1, 200)),
    "layer norm": lambda rng: layer_norm(rng.randint(1, 9), rng.randint(1, 200)),
    "chain": lambda rng: chain(tuple(rng.randint(1, 12) for _ in range(rng.randint(1, 3)))),
}
"""Computations of random sizes."""


def drawn_schedules(family: str, seed: int) -> Iterator[tuple[SearchTask, LoopState]]:
    """A drawn computation of a family, and a random schedule of each of its sketches; some are mutated."""
    rng = Random(f"{family} {seed}")
    task = gpu_task(FAMILIES[family](rng))
    space = SpaceOptions(unroll_steps=(0, 16, 64))
    for sketch in generate_sketches(task):
        for _ in range(20):
            state = sample_program(task, sketch, rng, space)
            if state is None:
                continue
            for _ in range(rng.choice((0, 0, 1, 3))):
                state = mutate(task, state, rng, space) or state
            yield task, state
            break


def any_schedule(task: SearchTask, *_: object) -> LoopState:
    """A random schedule of the last sketch of a task, in place of a search."""
    sketch = generate_sketches(task)[-1]
    drawn = (sample_program(task, sketch, Random(seed), SpaceOptions()) for seed in range(20))
    return next(state for state in drawn if state is not None)


def check_schedule(
    task: SearchTask, state: LoopState, seed: int = 0, *, is_compiled: bool = True
) -> PrimFunc:
    """Fail unless the kernels of a schedule compute what the loops as declared do; return the kernels.

    They are verified, interpreted, which finds races, and run as LLVM IR with a coroutine for each thread.
    """
    function = lower_to_kernels(task.dag, state)
    verify(in_module(function))
    inputs = small_numbers(task.dag, seed)
    expected = interpreted(lower_naive(task.dag.outputs), inputs)
    assert_close(interpreted(function, inputs), expected)
    if is_compiled:
        assert_close(on_this_cpu(function, inputs, is_descending=bool(seed % 2)), expected)
    return function


def small_numbers(dag: ComputeDAG, seed: int) -> dict[str, Any]:
    """Small whole numbers for each placeholder, whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return {
        tensor.buffer.name: rng.integers(-3, 4, tensor.shape).astype(tensor.dtype.numpy)
        for tensor in dag.placeholders
    }
