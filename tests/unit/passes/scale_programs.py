"""Programs that the tests of FoldScaleAxis share: layers, and ways to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.pass_checks import operator_counts

import intarsia as ia
from intarsia.ir import (
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    SymbolicDim,
    TensorType,
    Var,
)
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import run_arrays
from intarsia.op import call, infer_types, verify
from intarsia.passes import (
    BackwardFoldScaleAxis,
    ForwardFoldScaleAxis,
    partition_whole,
)
from intarsia.transform import Pass

BACKWARD, FORWARD = BackwardFoldScaleAxis(), ForwardFoldScaleAxis()
Step = Callable[[Expr], Expr]


def var(*shape: int | SymbolicDim, dtype: DType = DType.FLOAT32, name: str = "x") -> Var:
    return Var(name, checked_type=TensorType(shape, dtype))


def weights(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Constant:
    return Constant(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def factors(*shape: int, dtype: Any = np.float32, low: float = 0.5) -> Constant:
    return Constant(np.random.default_rng(7).uniform(low, 2, size=shape).astype(dtype))


def program(body: Expr, *params: Var) -> IRModule:
    return infer_types(IRModule.from_expr(Function(params, body)))


def checked_on_engine(made: Pass, before: IRModule) -> IRModule:
    """As `checked`, on onnxruntime: the reference evaluator cannot run grouped transposed convolutions."""
    after = made(before)
    verify(after)
    assert made(after) is after
    target = ia.Target.for_toolchain("onnxruntime")
    inputs = random_inputs(before["main"])
    expected, found = (run_arrays(ia.build(partition_whole(mod, target)), inputs) for mod in (before, after))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
    return after


def multiplications(mod: IRModule) -> int:
    counts = operator_counts(mod)
    return counts["Mul"] + counts["Div"]


def is_unchanged(body: Expr, *params: Var, by: Pass) -> bool:
    mod = program(body, *params)
    return by(mod) is mod


IMAGE = var(2, 4, 5, 6)
MATRIX = var(3, 4)
SIGNED = -1.5
"""Lower end of factors of which some are negative."""

LAYERS: dict[str, tuple[Var, Step, tuple[int, ...]]] = {
    "conv": (IMAGE, lambda x: call("Conv", x, weights(6, 4, 3, 3)), (6, 1, 1)),
    "conv with bias": (IMAGE, lambda x: call("Conv", x, weights(6, 4, 1, 1), weights(6)), (1, 6, 1, 1)),
    "grouped conv": (IMAGE, lambda x: call("Conv", x, weights(6, 2, 3, 3), weights(6), group=2), (6, 1, 1)),
    "depthwise conv": (IMAGE, lambda x: call("Conv", x, weights(8, 1, 2, 2), group=4), (8, 1, 1)),
    "conv of a line": (var(2, 4, 9), lambda x: call("Conv", x, weights(6, 4, 3), pads=(1, 1)), (6, 1)),
    "transposed conv": (
        IMAGE,
        lambda x: call("ConvTranspose", x, weights(4, 6, 3, 3), weights(6)),
        (6, 1, 1),
    ),
    "grouped transposed conv": (
        IMAGE,
        lambda x: call("ConvTranspose", x, weights(4, 3, 3, 3), group=2, strides=(2, 2)),
        (6, 1, 1),
    ),
    "gemm": (MATRIX, lambda x: call("Gemm", x, weights(4, 6), weights(6), alpha=0.5, beta=2.0), (6,)),
    "gemm of transposed": (MATRIX, lambda x: call("Gemm", x, weights(6, 4), weights(3, 6), transB=1), (6,)),
    "gemm with one bias": (MATRIX, lambda x: call("Gemm", x, weights(4, 6), weights(1)), (6,)),
    "matmul": (var(2, 3, 4), lambda x: call("MatMul", x, weights(4, 6)), (6,)),
    "batched matmul": (var(2, 3, 4), lambda x: call("MatMul", x, weights(2, 4, 6)), (1, 6)),
    "matmul of a vector": (var(4), lambda x: call("MatMul", x, weights(4, 6)), (6,)),
    "matmul from the left": (var(2, 4, 5), lambda x: call("MatMul", weights(6, 4), x), (6, 1)),
}


def conv(x: Expr, out: int = 6, seed: int = 0) -> Expr:
    return call("Conv", x, weights(out, 4, 3, 3, seed=seed), pads=(1, 1, 1, 1))


BY_CHANNEL = factors(6, 1, 1)
THROUGH: dict[str, Step] = {
    "relu": lambda x: call("Relu", x),
    "leaky relu": lambda x: call("LeakyRelu", x, alpha=0.3),
    "abs": lambda x: call("Abs", x),
    "neg": lambda x: call("Neg", x),
    "identity": lambda x: call("Identity", x),
    "max pool": lambda x: call("MaxPool", x, kernel_shape=(2, 2), pads=(1, 0, 0, 1)),
    "average pool": lambda x: call("AveragePool", x, kernel_shape=(2, 2), pads=(1, 0, 0, 1)),
    "global average pool": lambda x: call("GlobalAveragePool", x),
    "global max pool": lambda x: call("GlobalMaxPool", x),
    "pad": lambda x: call("Pad", x, Constant(np.array([0, 0, 1, 2, 0, 0, 0, 1]))),
    "mirror": lambda x: call("Pad", x, Constant(np.array([0, 0, 1, 2, 0, 0, 0, 1])), mode="reflect"),
    "mean": lambda x: call("ReduceMean", x, Constant(np.array([2, -1]))),
    "several": lambda x: call("MaxPool", call("Relu", call("Neg", x)), kernel_shape=(2, 2)),
}


def normalized(x: Expr, channels: int, seed: int) -> Expr:
    rng = np.random.default_rng(seed)
    mean, offset = (Constant(rng.normal(size=channels).astype(np.float32)) for _ in range(2))
    scale, variance = (Constant(rng.uniform(0.5, 2, channels).astype(np.float32)) for _ in range(2))
    return call("BatchNormalization", x, scale, offset, mean, variance)
