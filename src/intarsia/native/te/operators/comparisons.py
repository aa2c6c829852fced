"""Comparisons, logic and bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from intarsia.ir import DType
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import (
    call as intrinsic,
)
from intarsia.native.te.functions import (
    const,
    equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    select,
)
from intarsia.native.te.operators.broadcasting import elementwise
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.tensor import Tensor

_COMPARED: dict[str, Callable[..., Expression]] = {
    "Equal": equal,
    "Less": lambda x, y: x < y,
    "LessOrEqual": lambda x, y: x <= y,
    "Greater": lambda x, y: x > y,
    "GreaterOrEqual": lambda x, y: x >= y,
}
_LOGIC: dict[str, Callable[..., Expression]] = {
    "And": logical_and,
    "Or": logical_or,
    "Xor": not_equal,
    "Not": logical_not,
    "BitwiseAnd": lambda x, y: intrinsic("bit_and", x, y),
    "BitwiseOr": lambda x, y: intrinsic("bit_or", x, y),
    "BitwiseXor": lambda x, y: intrinsic("bit_xor", x, y),
    "BitwiseNot": lambda x: intrinsic("bit_not", x),
}


@compute_rule(*_COMPARED)
@in_float32
def compare(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a comparison of two elements; for NaN only inequality holds."""
    return elementwise(call, _COMPARED[call.op_name])


@compute_rule(*_LOGIC)
def logic(call: ComputeCall) -> Sequence[Tensor]:
    """Declare logic of bools, and of the bits of integers."""
    return elementwise(call, _LOGIC[call.op_name])


@compute_rule("BitShift")
def bit_shift(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a shift of bits; by less than 0, or by the width or more, it leaves copies of the sign."""
    is_left, dtype = call.text("direction") == "LEFT", call.output_type.dtype
    name, bits = "shift_left" if is_left else "shift_right", np.iinfo(dtype.value).bits
    is_signed = not dtype.value.startswith("uint")

    def shifted(x: Expression, by: Expression) -> Expression:
        outside = logical_or(by >= bits, by < 0) if is_signed else by >= bits
        # Loop functions leave shifts by the width or more undefined: shift by 0 there, and select the result.
        rest = const(0, dtype)
        if is_signed and not is_left:
            rest = select(x < 0, const(-1, dtype), rest)
        return select(outside, rest, intrinsic(name, x, select(outside, const(0, dtype), by)))

    return elementwise(call, shifted)


@compute_rule("IsNaN")
@in_float32
def is_nan(call: ComputeCall) -> Sequence[Tensor]:
    """Declare whether an element is NaN."""
    return elementwise(call, lambda x: not_equal(x, x))


@compute_rule("IsInf")
@in_float32
def is_inf(call: ComputeCall) -> Sequence[Tensor]:
    """Declare whether an element is infinite, of one sign or both."""
    wanted = [
        value
        for name, value in (("detect_positive", np.inf), ("detect_negative", -np.inf))
        if call.integer(name)
    ]

    def is_wanted(x: Expression) -> Expression:
        if not wanted:
            return const(False, DType.BOOL)
        return logical_or(*(equal(x, value) for value in wanted))

    return elementwise(call, is_wanted)
