"""A weighted sum of each token's neighbours: intarsia::token_filter (op/token_filter_op)."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, if_then_else, logical_and
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.op_attrs import FILTER
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.tensor import Tensor


@compute_rule("intarsia::token_filter")
def token_filter(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the sums for the number of tokens of the types.

    The result's attribute says which neighbours are read, so that kernels for other numbers can be written.
    """
    x, taps = call.input(0), call.input(1)
    first, step = call.integer("first"), call.integer("step")
    tokens, nothing = x.shape[1], const(0.0, x.dtype)

    def element(text: Expression, token: Expression, channel: Expression) -> Reduction:
        at = reduce_axis(taps.shape[0], "neighbour")
        near = token + at.expression * step + first
        value = if_then_else(logical_and(near >= 0, near < tokens), x[text, near, channel], nothing)
        return te_sum(value * taps[at.expression, channel], at)

    attrs = {FILTER: (x.op.name, taps.op.name, first, step)}
    return [compute(call.shape, element, call.name, attrs=attrs)]
