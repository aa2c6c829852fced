"""Smallest and largest right values of results made of steps: comparisons, roundings, and logic on them.

    Or(Greater(x, 0.5), Not(Equal(y, z)))

Where x is within noise of 0.5, both truth values are right; where the rest of the expression decides the
result, one is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, DType, Expr, TensorType, with_fields
from intarsia.measure.judge.gate_report import Array
from intarsia.measure.judge.reference_runs import ReferenceRuns
from intarsia.measure.judge.steps.arguments import argument_noise, is_exact, is_real
from intarsia.measure.judge.steps.movement import is_move, move, moved_from, operator_name
from intarsia.op.evaluate import evaluate_call

_MONOTONE: Final = frozenset({"Floor", "Ceil", "Round", "Sign", "Cast"})
_COMPARISONS: Final = frozenset({"Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
_LOGIC: Final = frozenset({"And", "Or", "Xor", "Not", "Where", "Cast"})
_ROUNDING: Final = frozenset({"Floor", "Ceil", "Round", "Sign"})
_KEEPING: Final = frozenset({"Cast", "Clip", "Relu"})
"""Monotone operators after which the results of a step are exact numbers, too."""
_DEEPEST: Final = 32
"""Operators on a path from a result to its steps; deeper ones are not followed."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Smallest and largest right value of each element."""

    low: Array
    high: Array

    def mapped(self, function: Callable[[Array], Array]) -> Bounds:
        """Return the bounds of a monotone function of the values."""
        return Bounds(function(self.low), function(self.high))


def has_step(expr: Expr) -> bool:
    """Whether a result is made of steps, of which one has an argument that engines compute differently."""
    return any(is_step(item) for item in _tree(expr))


def leaves(expr: Expr) -> tuple[Expr, ...]:
    """Return the values that `bounds_of` needs: arguments of steps, results of Equal, other truth values."""
    if not has_step(expr):
        return ()
    values: dict[Expr, None] = {}
    for item in _tree(expr):
        if is_step(item):
            assert isinstance(item, Call)
            values.update(dict.fromkeys(item.args))
            for arg in filter(is_stepped, item.args):
                values.update(dict.fromkeys(leaves(arg)))
            if operator_name(item) == "Equal":
                values[item] = None
        elif not _operands(item) and not isinstance(item, Constant):
            values[item] = None
    return tuple(values)


def bounds_of(expr: Expr, keys: Mapping[Expr, str], runs: ReferenceRuns) -> Bounds | None:
    """Return the bounds of a result; None if the noise of a value is not known.

    Args:
        expr: The result.
        keys: Names of its `leaves` among the exposed values.
        runs: Results of the judges.

    Raises:
        IntarsiaError: An operator cannot be computed.
    """
    try:
        return _Evaluation(keys, runs).bounds(expr)
    except _UnknownError:
        return None


class _UnknownError(Exception):
    """The noise of a value is not known."""


@dataclass(frozen=True, slots=True)
class _Evaluation:
    keys: Mapping[Expr, str]
    runs: ReferenceRuns

    def bounds(self, expr: Expr) -> Bounds:
        if is_step(expr):
            assert isinstance(expr, Call)
            return self._equal(expr) if operator_name(expr) == "Equal" else self._stepped(expr)
        if isinstance(expr, Constant):
            return Bounds(expr.data, expr.data)
        if not _operands(expr):
            return self._leaf(expr)
        assert isinstance(expr, Call)
        if is_move(expr):
            return self.bounds(expr.args[0]).mapped(lambda array: move(array, (expr,)))
        return self._logic(expr)

    def _stepped(self, step: Call) -> Bounds:
        intervals = [self._interval(arg) for arg in step.args]
        return Bounds(*(_stepped(step, intervals, sign) for sign in (-1, 1)))

    def _equal(self, call: Call) -> Bounds:
        (left, left_noise), (right, right_noise) = (self._real(arg) for arg in call.args)
        is_near = np.abs(left.astype(np.float64) - right) <= left_noise + right_noise
        expected, flips = self._truth(call)
        # Numbers that stay equal when weights and inputs are moved are equal by their meaning: a maximum and
        # the element that it is of.
        is_certain = expected & ~flips
        return Bounds(is_certain, is_near | expected)

    def _leaf(self, expr: Expr) -> Bounds:
        value, flips = self._truth(expr)
        if not flips.any():
            return Bounds(value, value)
        if value.dtype != np.bool_:
            raise _UnknownError
        return Bounds(value & ~flips, value | flips)

    def _logic(self, call: Call) -> Bounds:
        parts = [self.bounds(arg) for arg in _operands(call)]
        match operator_name(call):
            case "And":
                return Bounds(parts[0].low & parts[1].low, parts[0].high & parts[1].high)
            case "Or":
                return Bounds(parts[0].low | parts[1].low, parts[0].high | parts[1].high)
            case "Not":
                return Bounds(~parts[0].high, ~parts[0].low)
            case "Xor":
                is_open = (parts[0].low != parts[0].high) | (parts[1].low != parts[1].high)
                value = parts[0].low ^ parts[1].low
                return Bounds(value & ~is_open, value | is_open)
            case "Where":
                chosen = [
                    np.where(side, *(arg.low for arg in parts[1:])) for side in (parts[0].low, parts[0].high)
                ]
                return Bounds(np.minimum(*chosen), np.maximum(*chosen))
            case _:
                return parts[0].mapped(lambda array: _computed(call, (Constant(array), *call.args[1:])))

    def _interval(self, arg: Expr) -> Bounds:
        """Smallest and largest value of an argument of a step; those of a step before it are exact."""
        if not is_stepped(arg):
            value, noise = self._real(arg)
            return Bounds(*((value + sign * noise).astype(value.dtype) for sign in (-1, 1)))
        if has_step(arg):
            return self.bounds(arg)
        value, flips = self._truth(arg)
        if flips.any():
            raise _UnknownError
        return Bounds(value, value)

    def _real(self, arg: Expr) -> tuple[Array, Array]:
        """The value, and how far an engine may be off: not at all in a constant or an input."""
        key = self.keys.get(arg, "")
        value, noise = self.runs.exposed.get(key), argument_noise(self.runs, key)
        if value is not None and is_exact(arg):
            noise = np.zeros(value.shape)
        if value is None or noise is None:
            raise _UnknownError
        return value, noise

    def _truth(self, expr: Expr) -> tuple[Array, Array]:
        """The value, and where it was another one in some run."""
        key = self.keys.get(expr, "")
        value, spread = self.runs.exposed.get(key), self.runs.exposed_spreads.get(key)
        if value is None or spread is None:
            raise _UnknownError
        return value, np.asarray(spread, np.bool_)


def _stepped(step: Call, intervals: Sequence[Bounds], sign: int) -> Array:
    """The smallest (sign -1) or largest (sign 1) result of a step of arguments within intervals."""
    signs = (sign, -sign) if operator_name(step) in _COMPARISONS else (sign,)
    if operator_name(step).startswith("Less"):
        signs = (-sign, sign)
    pairs = zip(intervals, signs, strict=True)
    return _computed(step, [Constant(interval.high if way > 0 else interval.low) for interval, way in pairs])


def _computed(call: Call, args: Sequence[Expr]) -> Array:
    result = evaluate_call(with_fields(call, args=tuple(args), checked_type=None))
    assert not isinstance(result, tuple)
    return result


def _tree(expr: Expr) -> Iterator[Expr]:
    """The expression, and what it is made of down to steps and leaves."""
    waiting = [(expr, 0)]
    while waiting:
        current, depth = waiting.pop()
        yield current
        if not is_step(current) and depth < _DEEPEST:
            waiting += ((item, depth + 1) for item in _operands(current))


def is_step(expr: Expr) -> bool:
    """Whether an expression is a step of numbers that engines compute differently."""
    name = operator_name(expr)
    if (
        not isinstance(expr, Call)
        or name not in {*_MONOTONE, *_COMPARISONS, "Equal"}
        or not is_real(expr.args[0])
    ):
        return False
    return not (name == "Cast" and is_real(expr)) and not all(map(is_exact, expr.args))


def is_stepped(expr: Expr) -> bool:
    """Whether numbers are those of a step, such as Cast(Clip(Floor(x), 0, 9)): exact but for its jumps."""
    source = moved_from(expr)[0]
    if not isinstance(source, Call):
        return False
    name = operator_name(source)
    if name == "Cast" and is_real(source) and _is_discrete(source.args[0]):
        return True
    is_kept = name in _KEEPING and all(isinstance(arg, Constant) for arg in source.args[1:])
    return name in _ROUNDING or (is_kept and is_stepped(source.args[0]))


def _operands(expr: Expr) -> tuple[Expr, ...]:
    """The arguments of an operator on truth values and integers that bounds pass through; () of a leaf."""
    if not isinstance(expr, Call) or is_step(expr):
        return ()
    if is_move(expr):
        return expr.args[:1]
    name = operator_name(expr)
    if name in _KEEPING and is_stepped(expr) and is_real(expr.args[0]):
        return expr.args[:1]
    if name not in _LOGIC or not _is_discrete(expr.args[0]):
        return ()
    if name == "Where" and not all(isinstance(arg, Constant) for arg in expr.args[1:]):
        return ()
    return expr.args


def _is_discrete(expr: Expr) -> bool:
    """Whether an expression is a tensor of truth values or integers."""
    type_ = expr.checked_type
    return isinstance(type_, TensorType) and (type_.dtype is DType.BOOL or type_.dtype.is_integer)
