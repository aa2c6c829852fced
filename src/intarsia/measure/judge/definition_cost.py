"""Estimate the time of onnx.reference for a program from its operators and types.

Most of its operators are NumPy functions. Some are loops in Python, a thousand times as slow: pools, deformed
and transposed convolutions, sampling, non-maximum suppression. The constants are seconds of CPU time on one
core of a Xeon at 2.7 GHz, of one operator of ordinary size each; they are right within a factor of 3 or so,
which is enough to separate a second from a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Final

from intarsia.ir import Call, Expr, Function, IRModule, Op, TensorType, children, post_order
from intarsia.op.work import multiply_adds, reduction_length

SMALL_SECONDS: Final = 0.5
"""Time in seconds within which onnx.reference computes a small program."""

_CALL: Final = 3e-5
"""Seconds for the call of an operator."""
_ELEMENT: Final = 1e-8
"""Seconds for an element of the result of a NumPy function."""
_PRODUCT: Final = 1e-10
"""Seconds for a multiply-add of a matrix product."""
_IM2COL: Final = 6e-8
"""Seconds for an element that a convolution copies into its matrix."""
_ROUNDS: Final = 10
"""Assumed iterations of a Loop or Scan: their number is known at run time only."""

_BY_ELEMENT: Final = {
    **dict.fromkeys(("Erf", "Gelu"), 2.5e-7),
    **dict.fromkeys(("AveragePool", "LpPool"), 2.5e-5),
    **dict.fromkeys(("GatherElements", "ScatterElements", "GatherND", "ScatterND", "Unique"), 1e-6),
    "GridSample": 1.5e-4,
    "RoiAlign": 2e-5,
    "MaxRoiPool": 2e-5,
    "Col2Im": 2e-6,
    "Attention": 1e-6,
}
"""Seconds for an element of the result."""


def is_small(module: IRModule) -> bool:
    """Return whether onnx.reference computes a module within `SMALL_SECONDS`, by estimate."""
    return definition_seconds(module) <= SMALL_SECONDS


def definition_seconds(module: IRModule) -> float:
    """Estimate the seconds of one evaluation by onnx.reference.

    Args:
        module: Program; each graph function is counted once, unknown dimensions count as 1.
    """
    return sum(_seconds_of_function(function) for function in module.graph_functions.values())


def _seconds_of_function(function: Function) -> float:
    total = 0.0
    bodies: set[Function] = set()
    for expr in post_order(function):
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            continue
        total += _seconds(expr)
        if expr.op.name in ("Loop", "Scan"):
            bodies.update(child for child in children(expr) if isinstance(child, Function))
    # A body was counted once already.
    return total + sum((_ROUNDS - 1) * _seconds_of_function(body) for body in bodies)


def _seconds(call: Call) -> float:
    assert isinstance(call.op, Op)
    rule = _RULES.get(call.op.name)
    if rule is not None:
        return _CALL + rule(call)
    by_element = _BY_ELEMENT.get(call.op.name, _ELEMENT)
    return _CALL + _elements(call) * by_element + _products(call) * _PRODUCT


def _products(call: Call) -> int:
    return reduction_length(call) * _elements(call) if multiply_adds(call) or _is(call, "Einsum") else 0


def _convolution(call: Call) -> float:
    """Estimate a convolution: windows are copied into a matrix, in loops over rows."""
    weight = _shape(call.args[3 if _is(call, "QLinearConv") else 1])
    windows = _elements(call) // max(1, weight[0] if weight else 1)
    channels = _shape(call.args[0])[1:2] or (1,)
    copied = windows * channels[0] * prod(weight[2:])
    return copied * _IM2COL + _products(call) * _PRODUCT


def _transposed(call: Call) -> float:
    return multiply_adds(call) * 4e-8


def _deformed(call: Call) -> float:
    return _elements(call) * prod(_shape(call.args[1])[1:]) * 2e-4


def _pool(call: Call) -> float:
    kernel = call.attrs.get("kernel_shape")
    size = prod(item for item in kernel if isinstance(item, int)) if isinstance(kernel, tuple) else 1
    return _elements(call) * size * 6e-7


def _suppression(call: Call) -> float:
    """Estimate a suppression: every box is compared with the boxes that were chosen before."""
    scores = _shape(call.args[1])
    boxes = scores[-1] if scores else 1
    return prod(scores) * min(boxes, 1000) * 1e-6


def _recurrent(call: Call) -> float:
    """Estimate a recurrent operator: a loop over steps, with a matrix product in each."""
    shapes = [_shape(argument) for argument in call.args[:3]]
    steps = shapes[0][0] if shapes[0] else 1
    batch = shapes[0][1] if len(shapes[0]) > 1 else 1
    return steps * (1e-4 + batch * sum(prod(shape) for shape in shapes[1:]) * 1e-9)


def _sorting(call: Call) -> float:
    return prod(_shape(call.args[0])) * 1e-7


_RULES: Final[dict[str, Callable[[Call], float]]] = {
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv"), _convolution),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "ConvTranspose": _transposed,
    "DeformConv": _deformed,
    "MaxPool": _pool,
    "NonMaxSuppression": _suppression,
    "TopK": _sorting,
}


def _is(call: Call, name: str) -> bool:
    return isinstance(call.op, Op) and call.op.name == name


def _elements(expr: Expr) -> int:
    return prod(_shape(expr))


def _shape(expr: Expr) -> tuple[int, ...]:
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return ()
    return tuple(dim if isinstance(dim, int) else 1 for dim in type_.shape)
