"""Small integer values known at compile time: shapes, axes, pads, and what is computed from them.

Shape inference needs them ("data propagation"). A call records its value when it is built, if all its
arguments are known, so nothing here walks the program.
"""

from __future__ import annotations

import math
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from intarsia.ir import ABSENT, Call, Constant, DType, Expr, Op, TensorType
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of

LARGEST_KNOWN = 1024
"""Elements; a larger value is data, not a shape."""
_LARGEST_FLOATS = 16
"""The same for floating-point numbers, such as the scales of a Resize: one for each axis.

Scales of normalisations are folded elsewhere; computing them here as well took a tenth of a build.
"""

_known: WeakKeyDictionary[Expr, npt.NDArray[Any]] = WeakKeyDictionary()


def known_value(expr: Expr) -> npt.NDArray[Any] | None:
    """The value of a small tensor, if it was known when the expression was built."""
    if isinstance(expr, Constant):
        return expr.data if expr.data.size <= LARGEST_KNOWN else None
    return _known.get(expr)


def record_known_value(call: Call) -> None:
    """Compute and remember the value of a call of shape arithmetic whose arguments are known."""
    if not isinstance(call.op, Op):
        return
    facts = facts_of(call.op)
    if not facts.has(OperatorTrait.KNOWN) or not _may_be_shape(call):
        return
    value = _shape_value(call, facts.name) if facts.has(OperatorTrait.READS_SHAPE) else _evaluate(call)
    if value is not None and value.size <= LARGEST_KNOWN:
        _known[call] = value


def _may_be_shape(call: Call) -> bool:
    """Whether the result is small; where its size is not known it is not computed, as it may be huge."""
    match call.checked_type:
        case TensorType(dtype=DType.INT64 | DType.INT32 | DType.BOOL | DType.FLOAT32) as type_:
            most = _LARGEST_FLOATS if type_.dtype is DType.FLOAT32 else LARGEST_KNOWN
            return type_.is_static and math.prod(type_.static_shape) <= most
        case _:
            return False


def _shape_value(call: Call, name: str) -> npt.NDArray[Any] | None:
    match call.args[0].checked_type:
        case TensorType() as type_ if type_.is_static:
            shape = type_.static_shape
            if name == "Size":
                return np.array(math.prod(shape), dtype=np.int64)
            start, end = call.attrs.get("start", 0), call.attrs.get("end")
            assert isinstance(start, int)
            assert end is None or isinstance(end, int)
            return np.array(shape[start:end], dtype=np.int64)
        case _:
            return None


def _evaluate(call: Call) -> npt.NDArray[Any] | None:
    values = [known_value(arg) for arg in call.args if arg.checked_type != ABSENT]
    if not values or any(value is None for value in values):
        return None
    from onnx.reference import ReferenceEvaluator

    from intarsia.op.node import node_of

    node = node_of(call.op, call.args, call.attrs, outputs=1)
    feeds = dict(zip(filter(None, node.input), values, strict=True))
    try:
        with np.errstate(all="ignore"):
            return np.asarray(ReferenceEvaluator(node).run(None, feeds)[0])
    except Exception:  # onnx.reference raises anything; an unknown value is always a right answer
        return None
