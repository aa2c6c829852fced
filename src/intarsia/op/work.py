"""How many products an operator call computes, and how many terms its sums have, read off its types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Final

from intarsia.ir import Call, Expr, Op, TensorType
from intarsia.op.operator_facts import OperatorTrait, SumKind
from intarsia.op.operator_table import facts_of
from intarsia.op.window import convolution_windows

_QUANTIZED = re.compile(r"(Dynamic)?Quantize\w+|Q[A-Z]\w+|ConvInteger")
"""Names of operators that round to integers, or have such integers as arguments."""


def is_quantized(expr: Expr) -> bool:
    """Return whether an expression is a call that rounds to integers, or has such integers as arguments."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op):
        return False
    return _QUANTIZED.fullmatch(expr.op.name) is not None


def multiply_adds(expr: Expr) -> int:
    """Of a convolution or matrix product; 0 for everything else. Unknown dimensions count as 1.

    Products of a convolution with padding do not count: they can be left out.
    """
    if isinstance(expr, Call) and isinstance(expr.op, Op) and facts_of(expr.op).has(OperatorTrait.PRODUCT):
        windows = convolution_windows(expr) or ()
        return round(reduction_length(expr) * _elements(expr) * prod(window.share for window in windows))
    return 0


Shapes = list[tuple[int, ...]]


def _largest_dim(_: Call, shapes: Shapes) -> int:
    return max(shapes[0], default=1)


def _per_transposed_weight(_: Call, shapes: Shapes) -> int:
    return prod(shapes[1]) // max(1, shapes[1][1]) if shapes[1] else 1


def _inner(_: Call, shapes: Shapes) -> int:
    return shapes[0][-1] if shapes[0] else 1


def _gemm(call: Call, shapes: Shapes) -> int:
    return shapes[0][0 if call.attrs.get("transA") else -1] if shapes[0] else 1


def _recurrent(_: Call, shapes: Shapes) -> int:
    steps = shapes[0][0] if shapes[0] else 1
    return steps * sum(shape[-1] for shape in shapes[1:3] if shape)


def _window(call: Call, _: Shapes) -> int:
    kernel = call.attrs["kernel_shape"]
    return prod(item for item in kernel if isinstance(item, int)) if isinstance(kernel, tuple) else 1


def _per_item(_: Call, shapes: Shapes) -> int:
    items = shapes[0][0] if shapes[0] else 1
    return max(1, max(map(prod, shapes)) // max(1, items))


_LENGTHS: Final[Mapping[SumKind, Callable[[Call, Shapes], int]]] = {
    SumKind.NO_SUM: lambda _call, _shapes: 1,
    SumKind.REDUCED: lambda call, shapes: prod(shapes[0]) // max(1, _elements(call)),
    SumKind.FILTER: lambda _, shapes: prod(shapes[1][1:]),
    SumKind.QUANTIZED_FILTER: lambda _, shapes: prod(shapes[3][1:]),
    SumKind.TRANSPOSED_FILTER: _per_transposed_weight,
    SumKind.INNER: _inner,
    SumKind.GEMM: _gemm,
    SumKind.RECURRENT: _recurrent,
    SumKind.WINDOW: _window,
    SumKind.LARGEST_AXIS: _largest_dim,
    SumKind.PER_ITEM: _per_item,
}


def reduction_length(expr: Expr) -> int:
    """Terms of the sum behind one output element of an operator call; 1 where nothing is summed."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op):
        return 1
    shapes = [_shape(arg) for arg in expr.args]
    return max(1, _LENGTHS[facts_of(expr.op).summation](expr, shapes))


def _shape(expr: Expr) -> tuple[int, ...]:
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return ()
    return tuple(dim if isinstance(dim, int) else 1 for dim in type_.shape)


def _elements(expr: Expr) -> int:
    return prod(_shape(expr))
