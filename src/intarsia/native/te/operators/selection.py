"""Operators that choose or restrict elements, or store them in another type: Where, Clip, Cast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression, literal
from intarsia.native.te.functions import const, maximum, minimum, select
from intarsia.native.te.operators.broadcasting import elementwise
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.tensor import Tensor

FLUSHING: Final = "flushing"
"""Attribute of a Cast to bfloat16 of native kernels: 1 if a subnormal number may become 0."""


@compute_rule("Where")
def where(call: ComputeCall) -> Sequence[Tensor]:
    """Declare an element of one of two arguments; all three are broadcast."""
    return elementwise(call, select)


@compute_rule("Clip")
@in_float32
def clip(call: ComputeCall) -> Sequence[Tensor]:
    """Declare elements clamped between two scalars; the upper one wins if they cross, and NaN stays."""
    bounds = [_bound(call, position) for position in (1, 2)]

    def clipped(x: Expression) -> Expression:
        raised = x if bounds[0] is None else maximum(x, bounds[0])
        return raised if bounds[1] is None else minimum(raised, bounds[1])

    return elementwise(call, clipped, call.input(0))


def _bound(call: ComputeCall, position: int) -> Expression | None:
    """Return a bound, as a number where it is known; None where it is left out."""
    if not call.has_input(position):
        return None
    tensor, value = call.input(position), call.constants[position]
    if value is None:
        return tensor[(0,) * len(tensor.shape)]
    number = np.asarray(value, object).reshape(-1)[0]
    return literal(float(number) if tensor.dtype.is_float else int(number), tensor.dtype)


@compute_rule("Cast", "CastLike")
def cast(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the value in another type: to nearest, from floats to integers towards zero."""
    if call.integer(FLUSHING, 0):
        return elementwise(call, lambda x: functions.call("flushed", x), call.input(0))
    return elementwise(call, lambda x: x, call.input(0))


@compute_rule("Dropout")
def dropout(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the argument itself, as in inference, and a mask that is true everywhere."""
    if call.has_input(2) and bool(np.any(call.known_array(2))):
        raise call.not_covered("training")
    results = [*elementwise(call, lambda x: x, call.input(0))]
    if len(call.output_types) > 1:
        name = f"{call.name}.mask"
        results.append(compute(call.shape, lambda *_: const(True, DType.BOOL), name))
    return results
