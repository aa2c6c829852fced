"""Random functions without branches, of operators of every fusion kind, on small tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from intarsia.ir import Attrs, Call, Constant, Expr, Function, GlobalVar, IRModule, TensorType, Tuple, Var
from intarsia.op import call, tuple_get

SHAPE = (1, 16, 4)
"""Of all values; 256 bytes, so that Concat of halves can be written in place."""


def constant(values: object, dtype: type[np.generic] = np.float32) -> Constant:
    """A constant of an element type."""
    array = np.array(values, dtype)
    array.flags.writeable = False
    return Constant(array)


def ints(*values: int) -> Constant:
    """A shape, or axes."""
    return constant(values, np.int64)


def _reshaped_transpose(x: Expr) -> Expr:
    matrix = call("Reshape", x, ints(4, 16))
    return call("Reshape", call("Transpose", matrix, perm=(1, 0)), ints(*SHAPE))


def _halves(x: Expr) -> Expr:
    parts = call("Split", x, ints(8, 8), outputs=2, axis=1)
    return call("Concat", call("Neg", tuple_get(parts, 1)), call("Relu", tuple_get(parts, 0)), axis=1)


def _pooled(x: Expr) -> Expr:
    image = call("Relu", call("Reshape", x, ints(1, 4, 4, 4)))
    return call("Reshape", call("MaxPool", image, kernel_shape=(3, 3), pads=(1, 1, 1, 1)), ints(*SHAPE))


def _composite(x: Expr) -> Expr:
    inner = Var("inner", checked_type=x.checked_type)
    body = call("Tanh", call("Relu", inner))
    function = Function((inner,), body, Attrs({"Composite": "native.tanh_relu"}))
    return Call(function, (x,), checked_type=body.checked_type)


def _convolution(x: Expr) -> Expr:
    weight = constant(np.linspace(-1, 1, 16 * 16 * 3).reshape(16, 16, 3))
    return call("Conv", x, weight, constant(np.linspace(-1, 1, 16)), kernel_shape=(3,), pads=(1, 1))


def _rows(x: Expr) -> Expr:
    """Of the last and the first quarter, which are pieces of 64 bytes."""
    last, first = (call("Slice", x, ints(at), ints(at + 4), ints(1)) for at in (12, 0))
    return call("Concat", *[call("Softmax", call("Add", last, first), axis=-1)] * 4, axis=1)


UNARY: tuple[Callable[[Expr], Expr], ...] = (
    lambda x: call("Relu", x),
    lambda x: call("Gelu", x),
    lambda x: call("Identity", x),
    lambda x: call("Softmax", x, axis=-1),
    lambda x: call("ReduceMean", call("Abs", x), ints(1), keepdims=1),
    lambda x: call("MatMul", x, constant(np.eye(4) + 0.5)),
    lambda x: call("Add", x, constant([0.5, -1, 2, 3])),
    _pooled,
    lambda x: call("Slice", call("Pad", x, ints(0, 0, 1, 0, 0, 1)), ints(0), ints(4), ints(2)),
    lambda x: call("Gather", x, ints(*range(15, -1, -1)), axis=1),
    _reshaped_transpose,
    _halves,
    _rows,
    _composite,
    _convolution,
)
BINARY = ("Add", "Mul", "Sub", "Max")


@st.composite
def straight_programs(draw: st.DrawFn, steps: int = 8) -> IRModule:
    """A module whose main has two parameters and several results; one may be a parameter, or stand twice."""
    type_ = TensorType.of(np.zeros(SHAPE, np.float32))
    params = (Var("x", checked_type=type_), Var("y", checked_type=type_))
    values: list[Expr] = [*params, constant(np.linspace(-2, 2, 64).reshape(SHAPE))]
    for _ in range(draw(st.integers(1, steps))):
        x = draw(st.sampled_from(values[-4:]))
        if draw(st.booleans()):
            made = draw(st.sampled_from(UNARY))(x)
        else:
            made = call(draw(st.sampled_from(BINARY)), x, draw(st.sampled_from(values)))
        values.append(call("Expand", made, ints(*SHAPE)))
    more = draw(st.lists(st.sampled_from(values), max_size=2))
    return IRModule({GlobalVar("main"): Function(params, Tuple((values[-1], *more)))})
