"""Sum and Mean of several tensors as operators of two."""

from __future__ import annotations

from functools import reduce

import numpy as np

from intarsia.ir import Call, Constant, Expr
from intarsia.op import call as make_call
from intarsia.passes.rules.tensor_facts import dtype_of, operator_name


def sum_of_two(call: Call) -> Expr | None:
    """`Sum(x, y)` as `x + y`."""
    return make_call("Add", *call.args) if operator_name(call) == "Sum" and len(call.args) == 2 else None


def chain_of_sums(call: Call) -> Expr | None:
    """`Sum(x, y, z)` as `(x + y) + z`; Mean the same, divided by the number of tensors."""
    dtype = dtype_of(call)
    if len(call.args) < 2 or dtype is None:
        return None
    total = reduce(lambda left, right: make_call("Add", left, right), call.args)
    if operator_name(call) == "Sum":
        return total
    return make_call("Div", total, Constant(np.asarray(len(call.args), dtype.numpy)))
