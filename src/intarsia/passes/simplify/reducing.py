"""Reductions and pools over one element."""

from __future__ import annotations

from typing import Final

from intarsia.ir import ABSENT, Call, Expr
from intarsia.passes.rules.reshape_target import reshaped
from intarsia.passes.rules.rule_table import RuleTable, merged, rules_for
from intarsia.passes.rules.tensor_facts import constant_ints, dims_of, int_attr, ints_attr

_OF_ONE_ITSELF: Final = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd"
"""Reductions of which the result for one element is the element."""


def reduce_nothing(call: Call) -> Expr | None:
    """A reduction along no axis, as its argument."""
    axes = constant_ints(call.args[1]) if _has_axes(call) else ()
    is_noop = axes == () and int_attr(call.attrs, "noop_with_empty_axes", 0) == 1
    return call.args[0] if is_noop else None


def reduce_unit_axes(call: Call) -> Expr | None:
    """A reduction along axes of size 1, as a Reshape."""
    x, dims = call.args[0], dims_of(call.args[0])
    axes = constant_ints(call.args[1]) if _has_axes(call) else ()
    if dims is None or axes is None:
        return None
    if not axes and int_attr(call.attrs, "noop_with_empty_axes", 0):
        return None
    reduced = [dims[axis] for axis in axes or range(len(dims))]
    return reshaped(x, call.checked_type) if all(dim == 1 for dim in reduced) else None


def _has_axes(call: Call) -> bool:
    return len(call.args) > 1 and call.args[1].checked_type != ABSENT


def pool_of_one(call: Call) -> Expr | None:
    """A pool with a window of one element that moves by one, as its argument."""
    if "outputs" in call.attrs:
        return None
    sizes = [ints_attr(call.attrs, name) or () for name in ("kernel_shape", "strides")]
    is_one = all(size == 1 for size in (*sizes[0], *sizes[1]))
    return call.args[0] if is_one and not any(ints_attr(call.attrs, "pads") or ()) else None


def global_pool_of_one(call: Call) -> Expr | None:
    """A global pool over one element, as its argument."""
    dims = dims_of(call.args[0])
    is_one = dims is not None and all(dim == 1 for dim in dims[2:])
    return call.args[0] if is_one else None


RULES: RuleTable = merged(
    (
        rules_for(_OF_ONE_ITSELF, reduce_nothing, reduce_unit_axes),
        rules_for("AveragePool MaxPool", pool_of_one),
        rules_for("GlobalAveragePool GlobalMaxPool", global_pool_of_one),
    )
)
