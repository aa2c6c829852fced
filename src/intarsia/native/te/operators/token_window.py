"""Neighbours of each token in its text: intarsia::token_window (op/token_window_op)."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, if_then_else, logical_and
from intarsia.native.te.op_attrs import WINDOW
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.tensor import Tensor


@compute_rule("intarsia::token_window")
def token_window(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the neighbours for the number of tokens of the types.

    The result's attribute says which they are, so that kernels for other numbers can be written.
    """
    x, window = call.input(0), tuple(call.integer(name) for name in ("first", "count", "step"))
    first, _, step = window
    tokens, nothing = x.shape[1], const(0.0 if x.dtype.is_float else 0, x.dtype)

    def element(text: Expression, token: Expression, at: Expression, *rest: Expression) -> Expression:
        near = token + at * step + first
        return if_then_else(logical_and(near >= 0, near < tokens), x[(text, near, *rest)], nothing)

    return [compute(call.shape, element, call.name, attrs={WINDOW: window})]
