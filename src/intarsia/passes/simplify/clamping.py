"""Clip and Relu over each other, as one: Relu is a Clip from 0."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan

import numpy as np

from intarsia.ir import ABSENT, Call, Constant, DType, Expr
from intarsia.op import absent
from intarsia.op import call as make_call
from intarsia.passes.rules.rule_table import RuleTable
from intarsia.passes.rules.tensor_facts import dtype_of, operator_name


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range that a clamp leaves; infinite where it has no bound (`low <= high`)."""

    low: float
    high: float

    def clamped(self, value: float) -> float:
        """The value of the range that is nearest."""
        return min(max(value, self.low), self.high)


def clip_without_bounds(call: Call) -> Expr | None:
    """`clip(x)` as `x`."""
    return call.args[0] if bounds_of(call) == Bounds(-inf, inf) else None


def merge_clamps(call: Call) -> Expr | None:
    """`clip(clip(x, 0, 6), 1, 9)` as `clip(x, 1, 6)`, and the like with Relu."""
    inner = call.args[0]
    outer_bounds, inner_bounds = bounds_of(call), bounds_of(inner)
    if outer_bounds is None or inner_bounds is None or not isinstance(inner, Call):
        return None
    low, high = outer_bounds.clamped(inner_bounds.low), outer_bounds.clamped(inner_bounds.high)
    if Bounds(low, high) == inner_bounds:
        return inner
    dtype = dtype_of(inner)
    return None if dtype is None else _clip(inner.args[0], Bounds(low, high), dtype)


def bounds_of(expr: Expr) -> Bounds | None:
    """The range of a Relu, or of a Clip between constants that are in order."""
    match operator_name(expr):
        case "Relu":
            return Bounds(0, inf)
        case "Clip":
            assert isinstance(expr, Call)
            low, high = (_bound(expr, position, free) for position, free in ((1, -inf), (2, inf)))
            return Bounds(low, high) if low is not None and high is not None and low <= high else None
        case _:
            return None


def _bound(clip: Call, position: int, free: float) -> float | None:
    if len(clip.args) <= position or clip.args[position].checked_type == ABSENT:
        return free
    match clip.args[position]:
        case Constant(data=data) if data.size == 1:
            value: float = data.item()
            return None if isnan(value) else value
        case _:
            return None


def _clip(x: Expr, bounds: Bounds, dtype: DType) -> Expr:
    def argument(bound: float) -> Expr:
        return absent() if bound in (-inf, inf) else Constant(np.asarray(bound, dtype.numpy))

    return make_call("Clip", x, argument(bounds.low), argument(bounds.high))


RULES: RuleTable = {"Clip": (clip_without_bounds, merge_clamps), "Relu": (merge_clamps,)}
