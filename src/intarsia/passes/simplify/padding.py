"""Zeros that are put around a tensor before a convolution, which can add them itself."""

from __future__ import annotations

from intarsia.ir import ABSENT, Call, Constant, Expr, with_fields
from intarsia.passes.rules.rule_table import RuleTable
from intarsia.passes.rules.tensor_facts import constant_ints, dims_of, ints_attr, operator_name


def conv_of_pad(call: Call) -> Expr | None:
    """A Conv of a tensor with zeros around its spatial axes, as a Conv with larger pads."""
    pad = call.args[0]
    before = _zeros_around(pad)
    if before is None or any(before[:2]) or not _has_explicit_pads(call):
        return None
    assert isinstance(pad, Call)
    rank = len(before) // 2
    begins, ends = before[2:rank], before[rank + 2 :]
    if any(before[rank : rank + 2]):
        return None
    own = ints_attr(call.attrs, "pads") or (0,) * (2 * rank - 4)
    pads = tuple(a + b for a, b in zip(own, (*begins, *ends), strict=True))
    return with_fields(call, args=(pad.args[0], *call.args[1:]), attrs=call.attrs.updated(pads=pads))


def _zeros_around(expr: Expr) -> tuple[int, ...] | None:
    """How many zeros a Pad puts before and after each axis; None for all else."""
    dims = dims_of(expr)
    if operator_name(expr) != "Pad" or dims is None:
        return None
    assert isinstance(expr, Call)
    pads = constant_ints(expr.args[1])
    is_zero = len(expr.args) < 3 or _is_absent_or_zero(expr.args[2])
    is_constant = expr.attrs.get("mode", "constant") == "constant" and len(expr.args) < 4
    if pads is None or not (is_zero and is_constant) or len(pads) != 2 * len(dims) or min(pads) < 0:
        return None
    return pads


def _is_absent_or_zero(expr: Expr) -> bool:
    return expr.checked_type == ABSENT or (isinstance(expr, Constant) and not expr.data.any())


def _has_explicit_pads(call: Call) -> bool:
    return call.attrs.get("auto_pad", "NOTSET") == "NOTSET"


RULES: RuleTable = {"Conv": (conv_of_pad,)}
