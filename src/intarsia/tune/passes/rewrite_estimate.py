"""A guess at what a program costs, from the numbers of its operations: it orders what is measured first."""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.ir import Call, Constant, Expr, IRModule, Op, TensorType, TupleType, Type, children, post_order
from intarsia.measure.work import multiply_adds

MULTIPLY_ADD: Final = 1 / 32
"""Nanoseconds, about: one core with vectors of 8 does 32 in each."""
ELEMENT: Final = 1 / 8
"""Nanoseconds, about, for an element that is read or written, mostly in a cache."""
CALL: Final = 1000.0
"""Nanoseconds, about, for a call of a kernel."""

_FREE: Final = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
"""Operators that move no data."""


def estimated_cost(mod: IRModule) -> float:
    """Nanoseconds that a program may take; only its order among similar programs means anything.

    Counts multiplications of convolutions and matrix products (`measure.work`), elements that go in and
    out of operators, and calls. What depends on constants only is computed before. Linear in the program.

    Pointwise operators that an engine may fuse with what they follow cost like others. Without their calls
    and traffic, rank correlations (Kendall) with times of rewritten parts hardly change: bottlenecks of
    ResNeXt-50 with openvino from 0.62 and 0.74 to 0.64 and 0.74, with onnxruntime from 0.57 and 0.61 to 0.57
    and 0.60; a layer of bert_tiny, whose rewrites differ little, from -0.21 to -0.21 and from 0.11 to 0.05.
    """
    total, known = 0.0, set[Expr]()
    for expr in post_order(mod["main"]):
        if isinstance(expr, Constant):
            known.add(expr)
        elif isinstance(expr, Call) and isinstance(expr.op, Op):
            if expr.args and all(arg in known for arg in expr.args):
                known.add(expr)
            else:
                total += _cost(expr)
    return total


def _cost(call: Call) -> float:
    assert isinstance(call.op, Op)
    if call.op.name in _FREE and not call.op.domain:
        return 0.0
    moved = sum(_elements(each.checked_type) for each in (call, *children(call)[1:]))
    return MULTIPLY_ADD * multiply_adds(call) + ELEMENT * moved + CALL


def _elements(type_: Type | None) -> int:
    """Elements of a tensor or of all fields of a tuple; unknown dimensions count as 1."""
    match type_:
        case TensorType(shape=shape) if shape is not None:
            return prod(dim if isinstance(dim, int) else 1 for dim in shape)
        case TupleType(fields=fields):
            return sum(map(_elements, fields))
        case _:
            return 0
