"""One value of all tokens of each text: intarsia::token_pool (op/token_pool_op)."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import DType
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression, literal
from intarsia.native.te.functions import max as te_max
from intarsia.native.te.functions import min as te_min
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.op_attrs import POOL_MODE
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.tensor import Tensor

_REDUCTIONS = {"sum": te_sum, "mean": te_sum, "max": te_max, "min": te_min}


@compute_rule("intarsia::token_pool")
def token_pool(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the reduction, or the choice of a token, for the number of tokens of the types.

    The result's attribute says what becomes of tokens, so that kernels for other numbers can be written.
    """
    x, axis, mode = call.input(0), call.integer("axis"), call.text("mode")
    skipped = axis + call.integer("keepdims", 0)
    tokens = x.shape[axis]

    def element(index: tuple[Expression, ...], token: Expression) -> Expression:
        return x[(*index[:axis], token, *index[skipped:])]

    attrs = {POOL_MODE: mode}
    if mode in ("first", "last"):
        at = literal(0 if mode == "first" else tokens - 1, DType.INT64)
        return [compute(call.shape, lambda *i: element(i, at), call.name, attrs=attrs)]
    along = reduce_axis(tokens, "token")
    reduce = _REDUCTIONS[mode]
    name = f"{call.name}.total" if mode == "mean" else call.name
    total = compute(
        call.shape,
        lambda *i: reduce(element(i, along.expression), along),
        name,
        attrs={} if mode == "mean" else attrs,
    )
    if mode != "mean":
        return [total]
    count = literal(float(tokens), x.dtype)
    return [compute(call.shape, lambda *i: total[i] / count, call.name, attrs=attrs)]
