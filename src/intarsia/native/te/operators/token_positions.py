"""Positions of tokens, counted in masks: intarsia::token_positions (op/token_positions_op)."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, maximum, select
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.op_attrs import POSITIONS_MODE
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.tensor import Tensor


@compute_rule("intarsia::token_positions")
def token_positions(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the positions for the number of tokens of the types.

    The result's attribute has the mode, so that kernels for other numbers can be written.
    """
    mode, x = call.text("mode"), call.input(0)
    tokens = call.input(1).shape[1]

    def element(b: Expression, *at: Expression) -> Expression | Reduction:
        match mode:
            case "sum":
                before = reduce_axis(x.shape[1], "before")
                index = before.expression
                return te_sum(select(index <= at[0], x[b, index], const(0, x.dtype)), before)
            case "tail":
                return x[b, at[0] + (x.shape[1] - tokens)]
            case "positions":
                return x[b, 0] + at[0].astype(x.dtype)
            case _:
                return maximum(x[b] - tokens, 0)

    return [compute(call.shape, element, call.name, attrs={POSITIONS_MODE: mode})]
