"""Programs that consist of equal layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Tuple, Var
from intarsia.op import call
from intarsia.passes import InferType

WIDTH = 4


def weight(seed: int, *shape: int) -> Constant:
    """A random tensor."""
    return Constant(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def layer(x: Expr, seed: int, width: int = 8, mask: Expr | None = None) -> tuple[Expr, Expr]:
    """A feed-forward layer with a residual sum, of five operators, or six with a mask; and what is inside."""
    wide = call("MatMul", x, weight(seed, WIDTH, width))
    inner = call("Relu", call("Add", wide, weight(seed + 1, width)))
    kept = inner if mask is None else call("Mul", inner, mask)
    return call("Add", x, call("MatMul", kept, weight(seed + 2, width, WIDTH))), wide


def layers(
    count: int, widths: Sequence[int] = (8,), *, is_masked: bool = False, is_cached: bool = False
) -> IRModule:
    """Layers in a row behind an Abs, with a Tanh at the end.

    Args:
        count: Number of layers.
        widths: Widths of the layers' insides; the layers cycle through them.
        is_masked: Whether all of them use one mask, which is computed of a second input.
        is_cached: Whether the program also gives out the sum of each layer's inside.
    """
    x = Var("x", checked_type=TensorType((3, WIDTH), DType.FLOAT32))
    given = Var("given", checked_type=TensorType((3, 1), DType.FLOAT32))
    mask = call("Sigmoid", call("Neg", given)) if is_masked else None
    value: Expr = call("Abs", x)
    cached = []
    for at in range(count):
        value, inside = layer(value, 10 * at, widths[at % len(widths)], mask)
        cached.append(call("ReduceSum", inside, keepdims=0))
    params = (x, given) if is_masked else (x,)
    result = call("Tanh", value)
    body = Tuple((*cached, result)) if is_cached else result
    return InferType()(IRModule.from_expr(Function(params, body)))


def convolutions(count: int) -> IRModule:
    """Convolutions of images in a row, each followed by a Relu and added to what it was given."""
    x = Var("x", checked_type=TensorType((1, 4, 6, 6), DType.FLOAT32))
    value: Expr = x
    for at in range(count):
        made = call("Relu", call("Conv", value, weight(at, 4, 4, 3, 3), pads=(1, 1, 1, 1)))
        value = call("Add", value, made)
    return InferType()(IRModule.from_expr(Function((x,), value)))
