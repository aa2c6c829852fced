"""Small computations for which native has a rule, and their schedules compiled and run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.default_schedules import optimised, random_inputs, run_declared

from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.ir import DType
from intarsia.native import te
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import with_state
from intarsia.native.te.operators.block_products import BlockedWeight, block_product
from intarsia.native.te.operators.blocked_convolution import blocked_convolution, depthwise_convolution
from intarsia.native.te.operators.blocked_layout import blocked_bias
from intarsia.native.te.operators.blocked_pooling import blocked_max_pool
from intarsia.native.te.operators.blocked_transposed_convolution import (
    blocked_transposed_convolution,
    pack_transposed_weight,
)
from intarsia.native.te.operators.upsampling import Upsampling
from intarsia.native.te.operators.windows import Window
from intarsia.native.te.operators.winograd import winograd_convolution
from intarsia.target.target import Target

SMALL = Isa("x86_64", "x86-64-v3", ("avx", "avx2", "fma", "sse2"))
"""16 registers of 8 numbers: tiles are small, so that small images have many."""
LANES = SMALL.vector_bytes // 4


def product(m: int, n: int, k: int, *, constant: bool) -> tuple[te.Tensor, ...]:
    """A product of matrices with a bias and its positive part; a constant right matrix may be packed."""
    a, b = (
        te.placeholder((m, k), name="A"),
        te.placeholder((k, n), name="B", attrs={"constant": int(constant)}),
    )
    bias, axis = te.placeholder((n,), name="bias"), te.reduce_axis(k, "k")
    attrs = {"layout_free_placeholders": ("B",)} if constant else {}
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C", attrs=attrs)
    shifted = te.compute((m, n), lambda i, j: c[i, j] + bias[j], name="shifted")
    return a, b, bias, te.compute((m, n), lambda i, j: te.maximum(shifted[i, j], 0.0), name="relu")


def attention(heads: int, rows: int, size: int) -> tuple[te.Tensor, ...]:
    """Rows of scores, softmax, and the product with values."""
    q, v = (te.placeholder((heads, rows, size), name=name) for name in "qv")
    k = te.placeholder((heads, size, rows), name="k")
    shape = (heads, rows, rows)
    e, j1, j2, j3 = (te.reduce_axis(size if n == 0 else rows, f"r{n}") for n in range(4))
    scores = te.compute(shape, lambda h, i, j: te.sum(q[h, i, e] * k[h, e, j], axis=e), name="scores")
    most = te.compute(shape[:2], lambda h, i: te.max(scores[h, i, j1], axis=j1), name="most")
    powers = te.compute(shape, lambda h, i, j: te.exp(scores[h, i, j] - most[h, i]), name="powers")
    total = te.compute(shape[:2], lambda h, i: te.sum(powers[h, i, j2], axis=j2), name="total")
    parts = te.compute(shape, lambda h, i, j: powers[h, i, j] / total[h, i], name="parts")
    made = te.compute(
        (heads, rows, size), lambda h, i, c: te.sum(parts[h, i, j3] * v[h, j3, c], axis=j3), name="made"
    )
    return q, k, v, made


def two_products(batch: int, rows: int, width: int) -> tuple[te.Tensor, ...]:
    """Products of matrices of two heads, the second of what the first gives."""
    shape = (batch, rows, width)
    q, v = (te.placeholder(shape, name=name) for name in "QV")
    k = te.placeholder((batch, width, rows), name="K")
    over, along = te.reduce_axis(width, "d"), te.reduce_axis(rows, "t")
    s = te.compute((batch, rows, rows), lambda h, i, j: te.sum(q[h, i, over] * k[h, over, j], over), name="S")
    o = te.compute(shape, lambda h, i, j: te.sum(s[h, i, along] * v[h, along, j], along), name="O")
    return q, k, v, o


def turned_product(m: int, n: int, k: int) -> tuple[te.Tensor, ...]:
    """A product whose right matrix is given transposed, with a bias."""
    a, b, bias = (
        te.placeholder(shape, name=name) for name, shape in (("A", (m, k)), ("B", (n, k)), ("b", (n,)))
    )
    axis = te.reduce_axis(k, "k")
    turned = te.compute((k, n), lambda i, j: b[j, i], name="turned")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * turned[axis, j], axis=axis), name="C")
    return a, b, bias, te.compute((m, n), lambda i, j: c[i, j] + bias[j], name="shifted")


def convolution(blocks: int, made: int, size: int, stride: int = 1) -> tuple[te.Tensor, ...]:
    """A convolution of 3 by 3 with padding and a bias, all blocked."""
    window = Window(size, (size - 1) // stride + 1, 3, stride, 1, 1, 1)
    x = te.placeholder((1, blocks, size, size, LANES), name="x")
    w = te.placeholder((made, blocks, 3, 3, LANES, LANES), name="w", attrs={"constant": 1})
    b = te.placeholder((made, LANES), name="b", attrs={"constant": 1})
    return x, w, b, blocked_bias(blocked_convolution(x, w, (window, window), "conv"), b, "y")


def transformed_convolution(read: int, made: int, size: int) -> tuple[te.Tensor, ...]:
    """A convolution of blocks of channels by Winograd's F(2, 3), with a bias and its positive part."""
    window = Window(size, size, 3, 1, 1, 1, 1)
    x = te.placeholder((1, read, size, size, LANES), name="x")
    w = te.placeholder((4, 4, made, read, LANES, LANES), name="w", attrs={"constant": 1})
    b = te.placeholder((made, LANES), name="b", attrs={"constant": 1})
    shifted = blocked_bias(winograd_convolution(x, w, (window, window), 2, "conv"), b, "shifted")
    return x, w, b, te.compute(shifted.shape, lambda *i: te.maximum(shifted[i], 0.0), name="relu")


def depthwise(blocks: int, size: int) -> tuple[te.Tensor, ...]:
    """A depthwise convolution of 3 by 3 with padding and a bias."""
    window = Window(size, size, 3, 1, 1, 1, 1)
    x = te.placeholder((1, blocks, size, size, LANES), name="x")
    w = te.placeholder((blocks, 3, 3, LANES), name="w", attrs={"constant": 1})
    b = te.placeholder((blocks, LANES), name="b", attrs={"constant": 1})
    return x, w, b, blocked_bias(depthwise_convolution(x, w, (window, window), "conv"), b, "y")


def transposed(blocks: int, made: int, size: int) -> tuple[te.Tensor, ...]:
    """A transposed convolution of 4 by 4 at every second pixel, with a bias."""
    dimension = Upsampling(size, 2 * size, 4, 2, 1)
    weight = np.zeros((blocks * LANES, made * LANES, 4, 4), np.float32)
    shape = pack_transposed_weight(weight, (dimension, dimension), LANES, LANES).shape
    x = te.placeholder((1, blocks, size, size, LANES), name="x")
    w, b = te.placeholder(shape, name="w"), te.placeholder((made, LANES), name="b")
    conv = blocked_transposed_convolution(x, w, (dimension, dimension), "conv")
    return x, w, b, blocked_bias(conv, b, "y")


def pool(blocks: int, size: int) -> tuple[te.Tensor, ...]:
    """The greatest of 3 by 3, at every second pixel."""
    window = Window(size, (size - 3) // 2 + 1, 3, 2, 1, 0, 0)
    x = te.placeholder((1, blocks, size, size, LANES), name="x")
    return x, blocked_max_pool(x, (window, window), "y")


def row_norm(rows: int, width: int) -> tuple[te.Tensor, ...]:
    """Each row by its sum of squares."""
    x, k = te.placeholder((rows, width), name="x"), te.reduce_axis(width, "k")
    s = te.compute((rows,), lambda i: te.sum(x[i, k] * x[i, k], k), name="s")
    return x, te.compute((rows, width), lambda i, j: x[i, j] / (s[i] + 1.0), name="y")


def narrow_product(rows: int, columns: int, depth: int) -> tuple[te.Tensor, ...]:
    """A product with weights of four bits in blocks of 16, with zero points and a positive part."""
    panels, blocks = -(-columns // LANES), depth // 16
    x = te.placeholder((rows, depth), name="x")
    words = te.placeholder((panels, depth // 8, LANES), DType.INT32, "w", {"constant": 1})
    scale, offset = (
        te.placeholder((panels, blocks, LANES), name=name, attrs={"constant": 1}) for name in ("s", "z")
    )
    product = block_product(x, BlockedWeight(words, scale, offset, 4, 8, columns), "y")
    relu = te.compute((rows, columns), lambda i, j: te.maximum(product[i, j], 0.0), name="relu")
    return x, words, scale, offset, relu


PROGRAMS: dict[str, Callable[[], tuple[te.Tensor, ...]]] = {
    "packed_product": lambda: product(29, 50, 24, constant=True),
    "product": lambda: product(26, 37, 20, constant=False),
    "turned_product": lambda: turned_product(6, 21, 50),
    "narrow_product": lambda: narrow_product(23, 37, 64),
    "two_products": lambda: two_products(2, 40, 34),
    "attention": lambda: attention(2, 40, 24),
    "convolution": lambda: convolution(2, 4, 9),
    "strided_convolution": lambda: convolution(1, 3, 11, 2),
    "winograd": lambda: transformed_convolution(2, 3, 11),
    "depthwise": lambda: depthwise(3, 10),
    "transposed": lambda: transposed(1, 2, 5),
    "pool": lambda: pool(2, 13),
    "row_norm": lambda: row_norm(13, 70),
}
"""By name."""


@cache
def program_task(name: str, threads: int = 2) -> SearchTask:
    """The task of a program; its constants are packed ahead, as in models."""
    option = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
    dag, hardware = ComputeDAG(PROGRAMS[name]()), HardwareParams.of_isa(SMALL, threads)
    return SearchTask(dag, Target("cpu"), hardware, name, option)


def check_runs_right(name: str, state: LoopState) -> None:
    """Fail unless a state of a program, compiled with packed constants, computes what is declared."""
    dag = program_task(name).dag
    made = with_state(dag, state)
    kernel = compile_kernel(optimised(made.lowered(), SMALL), SMALL).load()
    inputs, expected = _expected(name)
    packed = {each.tensor_name: each.pack(inputs[each.tensor_name]) for each in made.packings}
    given = [{**inputs, **packed}[tensor.buffer.name] for tensor in made.dag.placeholders]
    results = [np.full(tensor.shape, 77, tensor.dtype.numpy) for tensor in made.dag.outputs]
    with ThreadPool(2) as threads:
        kernel(*given, *results, pool=threads)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5, err_msg=str(state))


@cache
def _expected(name: str) -> tuple[dict[str, npt.NDArray[Any]], list[npt.NDArray[Any]]]:
    dag = program_task(name).dag
    inputs = random_inputs(dag)
    return inputs, run_declared(dag, inputs)
