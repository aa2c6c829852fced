"""Programs of images, channels first and channels last."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.parallel_programs import constant

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    Tuple,
    Var,
    post_order,
)
from intarsia.op import call

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def image(*dims: int) -> Var:
    return Var("x", checked_type=TensorType(dims or (1, 3, 5, 4), DType.FLOAT32))


def program(*results: Expr) -> IRModule:
    """A program of its free variables, which returns those results."""
    params = tuple(dict.fromkeys(node for node in post_order(*results) if isinstance(node, Var)))
    return IRModule.from_expr(Function(params, results[0] if len(results) == 1 else Tuple(results)))


def to_last(value: Expr) -> Expr:
    return call("Transpose", value, perm=TO_LAST)


def to_first(value: Expr) -> Expr:
    return call("Transpose", value, perm=TO_FIRST)


def conv(value: Expr, channels: int = 3, seed: int = 0, **attrs: Any) -> Expr:
    return call("Conv", value, constant(channels, 3, 1, 1, seed=seed), **attrs)


def conv_last(value: Expr, seed: int = 0) -> Expr:
    """A convolution as a framework with channels last exports it."""
    return to_last(conv(to_first(value), seed=seed))


def ints(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))


def outer_operators(mod: IRModule) -> list[str]:
    """Operators and layout functions of @main, in order of evaluation, without the inside of the latter."""
    inside = {
        node for node in post_order(mod["main"]) if isinstance(node, Function) and node is not mod["main"]
    }
    return [
        str(node.op) if isinstance(node.op, Op) else f"layout.{node.op.attrs['Composite']!s}"
        for node in post_order(mod["main"], stop=inside)
        if isinstance(node, Call) and isinstance(node.op, (Op, Function))
    ]
