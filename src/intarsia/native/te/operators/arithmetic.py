"""Arithmetic of two or more arguments that are broadcast: Add, Div, Pow, Min, Mean and their kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, equal, maximum, minimum, power, select, sqrt
from intarsia.native.te.operators.broadcasting import elementwise
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.scalar_functions import floored_remainder, truncating_quotient
from intarsia.native.te.tensor import Tensor

_LARGEST_POWER = 4
"""Largest whole exponent that is expanded into multiplications."""

_FOLDED: dict[str, Callable[[Expression, Expression], Expression]] = {
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Min": minimum,
    "Max": maximum,
    "Sum": lambda x, y: x + y,
    "Mean": lambda x, y: x + y,
}


@compute_rule(*_FOLDED)
@in_float32
def fold(call: ComputeCall) -> Sequence[Tensor]:
    """Combine any number of broadcast arguments from left to right; numbers of any type."""
    combine, count = _FOLDED[call.op_name], len(call.inputs)
    if call.op_name != "Mean":
        return elementwise(call, lambda *values: reduce(combine, values))
    return elementwise(call, lambda *values: reduce(combine, values) / float(count))


@compute_rule("Div")
@in_float32
def div(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the quotient; of integers towards zero, and 0 where the divisor is."""
    if call.output_type.dtype.is_float:
        # Integers: ONNX divides towards zero, and machines trap at a zero divisor.
        return elementwise(call, lambda x, y: x / y)
    return elementwise(call, truncating_quotient)


@compute_rule("Mod")
def mod(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the remainder of integers, with the sign of the divisor or (fmod) of the dividend."""
    if not call.output_type.dtype.is_integer:
        raise call.not_covered("floats, whose remainder takes long division")
    if call.integer("fmod"):
        return elementwise(call, _truncated_remainder)
    return elementwise(call, floored_remainder)


def _truncated_remainder(x: Expression, y: Expression) -> Expression:
    return select(equal(y, 0), const(0, x.dtype), x - truncating_quotient(x, y) * y)


@compute_rule("Pow")
@in_float32
def pow_(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the power of a float; small known powers are multiplications, also of integers."""
    base, exponent = call.input(0), _known_exponent(call)
    if exponent is not None and exponent in range(1, _LARGEST_POWER + 1):
        count = int(exponent)
        return elementwise(call, lambda x: reduce(lambda y, z: y * z, [x] * count), base)
    if not base.dtype.is_float:
        raise call.not_covered("integers to a power that is not known to be 1, 2, 3 or 4")
    if exponent == 0.5:
        return elementwise(call, sqrt, base)
    return elementwise(call, lambda x, y: power(x, y.astype(base.dtype)))


def _known_exponent(call: ComputeCall) -> float | None:
    """Return the exponent, if it is one number that does not make the result larger than the base."""
    value = call.constants[1]
    if value is None or value.size != 1 or call.input(0).shape != call.shape:
        return None
    return float(np.asarray(value, np.float64).reshape(-1)[0])
