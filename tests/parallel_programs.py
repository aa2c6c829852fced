"""Programs with parallel convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Tuple, Var
from intarsia.op import call


def constant(*shape: int, seed: int = 0, dtype: DType = DType.FLOAT32) -> Constant:
    """Positive random numbers around 1."""
    data = np.random.default_rng([seed, *shape]).uniform(0.5, 1.5, shape)
    return Constant(np.asarray(data.astype(dtype.numpy)))


def image(*dims: int, dtype: DType = DType.FLOAT32) -> Var:
    return Var("x", checked_type=TensorType(dims or (1, 2, 6, 6), dtype))


def program(x: Var, *results: Expr) -> IRModule:
    return IRModule.from_expr(Function((x,), Tuple(results)))


def convolutions(
    x: Expr,
    outputs: Sequence[int] = (1, 2, 3),
    kernel: Sequence[int] = (3, 3),
    biases: bool = True,
    **attrs: Any,
) -> list[Expr]:
    """Convolutions of x (two channels) with those numbers of output channels."""
    return [
        call(
            "Conv",
            x,
            constant(count, 2, *kernel, seed=i),
            *((constant(count, seed=i),) if biases else ()),
            **attrs,
        )
        for i, count in enumerate(outputs)
    ]


def products(x: Expr, columns: Sequence[int] = (2, 3, 4), rows: int = 4) -> list[Expr]:
    """Products of x with matrices of those numbers of columns."""
    return [call("MatMul", x, constant(rows, count, seed=i)) for i, count in enumerate(columns)]
