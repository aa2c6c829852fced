"""How much a function computes, and how its rounding errors add up, read off its types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from intarsia.ir import Call, Expr, Function, IRModule, Op, TensorType, children, post_order
from intarsia.op.operator_facts import OperatorTrait, SumKind
from intarsia.op.operator_table import facts_of
from intarsia.op.purity import is_random
from intarsia.op.window import convolution_windows

_QUANTIZED = re.compile(r"(Dynamic)?Quantize\w+|Q[A-Z]\w+|ConvInteger")
"""Names of operators that round to integers, or have such integers as arguments."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a function does, in numbers.

    Attributes:
        multiply_adds: Number of multiply-adds of its convolutions and matrix products; unknown dimensions
            count as 1.
        reduction_length: Terms of its longest sum.
        depth: Sums that follow one another on the longest path.
        quantized: Whether it rounds to integers on the way.
    """

    multiply_adds: int
    reduction_length: int
    depth: int
    quantized: bool


def work_of(module: IRModule) -> Work:
    """The work of all graph functions of a module; linear in its expressions."""
    parts = [_function_work(function) for function in module.graph_functions.values()]
    return Work(
        sum(part.multiply_adds for part in parts),
        max((part.reduction_length for part in parts), default=1),
        sum(part.depth for part in parts) or 1,
        any(part.quantized for part in parts),
    )


def _function_work(function: Function) -> Work:
    total, longest, quantized = 0, 1, False
    depth: dict[Expr, int] = {}
    for expr in post_order(function):
        length = reduction_length(expr)
        depth[expr] = max((depth[child] for child in children(expr)), default=0) + (length > 1)
        longest = max(longest, length)
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            quantized |= _QUANTIZED.fullmatch(expr.op.name) is not None
            total += multiply_adds(expr)
    return Work(total, longest, depth[function], quantized)


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


def random_operators(module: IRModule) -> tuple[str, ...]:
    """Return the names of the operators of a module that draw random numbers at each call."""
    names = (
        expr.op.name
        for function in module.graph_functions.values()
        for expr in post_order(function)
        if isinstance(expr, Call) and isinstance(expr.op, Op) and is_random(expr)
    )
    return tuple(dict.fromkeys(names))


def random_text(module: IRModule) -> str:
    """A clause about a module that draws random numbers; "" if it draws none."""
    names = ", ".join(random_operators(module))
    if not names:
        return ""
    return f"the model draws random numbers ({names}), and results that depend on them cannot be checked"
