"""Random programs on a batch of any size, some of which mix its items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from hypothesis import strategies as st

from intarsia.ir import Constant, DType, Expr, Function, IRModule, SymbolicDim, TensorType, Tuple, Var
from intarsia.op import call
from intarsia.passes import bind_sizes
from intarsia.passes.batches import independence_obstacle
from intarsia.passes.batches.item_axes import ITEMS
from intarsia.support.errors import IntarsiaError

SHAPES: Final = ((4, 6), (2, 3, 4), (6,))
Step = Callable[[st.DrawFn, Sequence[Expr]], Expr]


def ints(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))


def rank(expr: Expr) -> int:
    assert isinstance(expr.checked_type, TensorType)
    assert expr.checked_type.shape is not None
    return len(expr.checked_type.shape)


def axis_of(draw: st.DrawFn, expr: Expr) -> int:
    return draw(st.integers(-rank(expr), rank(expr) - 1))


def value(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    return draw(st.sampled_from(values))


def unary(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    return call(draw(st.sampled_from(("Relu", "Neg", "Tanh", "Abs"))), value(draw, values))


def binary(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    name = draw(st.sampled_from(("Add", "Mul", "Max")))
    return call(name, value(draw, values), value(draw, values))


def with_row(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    row = np.arange(draw(st.sampled_from((1, 4, 6))), dtype=np.float32)
    return call("Add", value(draw, values), Constant(row))


def along(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    return call(draw(st.sampled_from(("Softmax", "LogSoftmax", "Hardmax"))), x, axis=axis_of(draw, x))


def normalized(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    return call("LayerNormalization", x, Constant(np.ones(1, np.float32)), axis=axis_of(draw, x))


def reduced(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    axes = draw(st.lists(st.integers(0, rank(x) - 1), max_size=2, unique=True))
    return call("ReduceMean", x, ints(*axes), keepdims=draw(st.integers(0, 1)))


def cumulated(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    return call("CumSum", x, Constant(np.array(axis_of(draw, x), np.int64)))


def transposed(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    return call("Transpose", x, perm=tuple(draw(st.permutations(range(rank(x))))))


def reshaped(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    shape = draw(
        st.sampled_from(((-1, 6), (-1, 2, 3), (6, -1), (-1, 4, 6), (-1, 24), (2, -1, 2), (0, -1), (-1,)))
    )
    return call("Reshape", value(draw, values), ints(*shape))


def concatenated(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    return call("Concat", x, value(draw, values), axis=axis_of(draw, x))


def sliced(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    return call("Slice", x, ints(0), ints(draw(st.integers(1, 3))), ints(axis_of(draw, x)))


def gathered(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    indices = ints(0, 1, 0) if draw(st.booleans()) else Constant(np.array(0, np.int64))
    return call("Gather", x, indices, axis=axis_of(draw, x))


def product(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    if draw(st.booleans()):
        rows = draw(st.sampled_from((4, 6)))
        return call("MatMul", x, Constant(np.ones((rows, 6), np.float32)))
    return call("MatMul", x, value(draw, values))


def squeezed(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    if draw(st.booleans()):
        return call("Unsqueeze", x, ints(draw(st.integers(0, rank(x)))))
    return call("Squeeze", x, ints(axis_of(draw, x)))


def padded(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    x = value(draw, values)
    zero = Constant(np.array(0, np.float32))
    return call("Pad", x, ints(1, 0), zero, ints(axis_of(draw, x)))


def sized(draw: st.DrawFn, values: Sequence[Expr]) -> Expr:
    """A value computed from the shape: the batch as a factor, or a tensor that has as many rows."""
    x = value(draw, values)
    shape = call("Shape", x)
    if draw(st.booleans()):
        return call("Mul", x, call("Cast", call("Slice", shape, ints(0), ints(1)), to=1))
    return call("Expand", Constant(np.ones(1, np.float32)), shape)


STEPS: Final[tuple[Step, ...]] = (
    unary,
    binary,
    with_row,
    along,
    normalized,
    reduced,
    cumulated,
    transposed,
    reshaped,
    concatenated,
    sliced,
    gathered,
    product,
    squeezed,
    padded,
    sized,
)


@st.composite
def programs(draw: st.DrawFn) -> IRModule:
    """A program of a few steps on a batch of any size; steps whose types do not fit are left out."""
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=2))
    params = tuple(
        Var(f"p{number}", checked_type=TensorType((SymbolicDim("n"), *shape), DType.FLOAT32))
        for number, shape in enumerate(shapes)
    )
    values: list[Expr] = list(params)
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=5)):
        try:
            new = step(draw, values)
        except IntarsiaError:
            continue
        if isinstance(new.checked_type, TensorType) and new.checked_type.shape:
            values.append(new)
    results = tuple(values[-2:]) if draw(st.booleans()) else (values[-1],)
    return IRModule.from_expr(Function(params, results[0] if len(results) == 1 else Tuple(results)))


def obstacle(mod: IRModule) -> str | None:
    try:
        bound = bind_sizes(mod, {"n": ITEMS})
    except IntarsiaError:  # a product of two batches, say
        return "types do not fit"
    return independence_obstacle(bound["main"], {param.name: 0 for param in mod["main"].params})
