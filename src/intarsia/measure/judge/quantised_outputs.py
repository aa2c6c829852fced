"""Find outputs that were rounded to a step of a quantised type, and may be off by one."""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, Expr, IRModule, Op, Tuple, TupleGetItem

_QUANTISING: Final = frozenset(
    {
        "QuantizeLinear",
        "DynamicQuantizeLinear",
        "QLinearConv",
        "QLinearMatMul",
        "QLinearAdd",
        "QLinearMul",
        "QLinearSigmoid",
        "QLinearLeakyRelu",
        "QLinearSoftmax",
        "QLinearConcat",
        "QLinearAveragePool",
        "QLinearGlobalAveragePool",
        "QGemm",
    }
)
_MOVING: Final = frozenset(
    {
        *("Reshape", "Transpose", "Identity", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Concat", "Split"),
        *("MaxPool", "Gather", "Pad", "Expand", "Relu", "DepthToSpace", "SpaceToDepth", "Clip"),
    }
)
"""Operators with results that are values of their arguments."""


_ROUNDED_UP: Final = 1.01
"""Factor of a step for the rounding of its scale; far below the next step."""


def quantised_outputs(module: IRModule) -> dict[int, float]:
    """Return the outputs of @main that a quantising operator computes, each with its step.

    The step of integers is 1, that of numbers is the largest scale of the DequantizeLinear that made them,
    with a little for its rounding; 1 % is far below the next step.
    """
    body = module["main"].body
    fields = body.fields if isinstance(body, Tuple) else (body,)
    steps = {number: _step(field) for number, field in enumerate(fields)}
    return {number: step for number, step in steps.items() if step is not None}


def _step(expr: Expr) -> float | None:
    """Return the step that a value was rounded to, found through operators that only move values."""
    waiting, seen = [expr], set[Expr]()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if isinstance(current, TupleGetItem):
            waiting.append(current.tuple_value)
        elif isinstance(current, Call) and isinstance(current.op, Op):
            if current.op.name in _QUANTISING:
                return 1.0
            if current.op.name == "DequantizeLinear" and isinstance(current.args[1], Constant):
                return _ROUNDED_UP * float(np.abs(current.args[1].data.astype(np.float64)).max(initial=0.0))
            if current.op.name in _MOVING:
                waiting.extend(current.args if current.op.name == "Concat" else current.args[:1])
    return None
