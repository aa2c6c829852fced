"""Keys or values of the past with new ones behind them: intarsia::token_append (op/token_append_op)."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, if_then_else, logical_and
from intarsia.native.te.op_attrs import APPEND_INPUTS
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import clamped
from intarsia.native.te.tensor import Tensor


@compute_rule("intarsia::token_append")
def token_append(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the joined tensor for the numbers of tokens of the types.

    The result's attribute says where its arguments are, so that kernels for other numbers can be written.
    """
    past, new = call.input(0), call.input(1)
    before, added = past.shape[2], new.shape[2]
    starts = call.input(2) if call.has_input(2) else None

    def element(b: Expression, h: Expression, j: Expression, e: Expression) -> Expression:
        if starts is None:
            return if_then_else(j < before, past[b, h, j, e], new[b, h, j - before, e])
        row = j - clamped(starts[b], before + 1)
        is_new = logical_and(row >= 0, row < added)
        other = if_then_else(j < before, past[b, h, clamped(j, before), e], const(0, past.dtype))
        return if_then_else(is_new, new[b, h, clamped(row, added), e], other)

    inputs = [past, new, *([] if starts is None else [starts])]
    attrs = {APPEND_INPUTS: tuple(tensor.op.name for tensor in inputs)}
    return [compute(call.shape, element, call.name, attrs=attrs)]
