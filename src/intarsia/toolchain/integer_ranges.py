"""Bounds of integer values: which values a program can compute, as far as its operators say.

Forward, by interval arithmetic: constants, lengths of axes, truth values, what is computed from them.
Backward, from uses: what selects rows of a table lies within it, and a shape is no larger than memory; else
the program has no result at all.

Inputs of 64 bits are taken to be within 32 bits: a toolchain that relies on this checks it at run time. An
axis of unknown length is taken to have at most `LONGEST_AXIS` elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from intarsia.ir import Call, Constant, DType, Expr, Function, Op, TensorType, TupleGetItem, Var, post_order
from intarsia.op.constant_argument import CONSTANT_ARGUMENTS
from intarsia.op.known_value import LARGEST_KNOWN, known_value
from intarsia.runtime.kernel import Array

Interval: TypeAlias = tuple[float, float]
"""Smallest and largest value, both included; of integers they are `int`, or infinite if nothing is known."""

INT32: Final[Interval] = (-(2**31), 2**31 - 1)
LONGEST_AXIS: Final = 2**20
"""Elements of an axis of unknown length: a minute of sound, a picture of 1,048,576 pixels a side."""

_BITS: Mapping[DType, Interval] = MappingProxyType(
    {
        DType.BOOL: (0, 1),
        **{DType(f"int{bits}"): (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
        **{DType(f"uint{bits}"): (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
    }
)
_MOVES = """
    Identity Reshape Squeeze Unsqueeze Flatten Transpose Expand Tile Slice Gather GatherElements GatherND
    DepthToSpace SpaceToDepth Split Trilu ReverseSequence Compress
"""
MOVING: Final[Mapping[str, tuple[int, ...] | None]] = MappingProxyType(
    {
        **dict.fromkeys(_MOVES.split(), (0,)),
        "Concat": None,
        "Where": (1, 2),
        **dict.fromkeys(("Pad", "ScatterElements", "ScatterND"), (0, 2)),
    }
)
"""Operators whose results are values of arguments at these positions (None: of any): they compute none."""

_WHOLE_MOVES = frozenset(
    [
        "Identity",
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Transpose",
        "Expand",
        "Tile",
        "Concat",
        "Cast",
    ]
)
"""Those that keep every element of their first argument (or of all): a bound of the result is one of it."""

_SELECTING = MappingProxyType({"Gather": 0, "GatherElements": 0, "ScatterElements": 0})
"""Operators whose second argument selects along an attribute's axis."""


_REAL = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64})
_ANY: Final[Interval] = (-math.inf, math.inf)


def type_interval(expr: Expr) -> Interval | None:
    """All values of an expression's element type; None if that is no integer, or not known."""
    type_ = expr.checked_type
    return _BITS.get(type_.dtype) if isinstance(type_, TensorType) else None


class IntegerRanges:
    """Intervals of the integer values of a program.

    Attributes:
        uses: Intervals that follow from uses, by expression.
    """

    def __init__(self, function: Function | None = None) -> None:
        """Collect what the uses in a function say of its values; without function, only forward bounds."""
        self.uses: dict[Expr, Interval] = {}
        self._forward: dict[Expr, Interval | None] = {}
        if function is not None:
            self._collect_uses(function)

    def interval(self, expr: Expr) -> Interval | None:
        """The interval of an expression's values; None if it is no tensor of numbers."""
        stack = [expr]
        while stack:
            top = stack[-1]
            missing = [item for item in _sources(top) if item not in self._forward]
            stack += missing
            if not missing:
                self._forward[stack.pop()] = self._bound(top)
        return self._forward[expr]

    def _bound(self, expr: Expr) -> Interval | None:
        full = _ANY if _is_real(expr) else type_interval(expr)
        if full is None:
            return None
        forward = self._computed(expr)
        if forward is None or not _is_within(forward, full):
            forward = full  # unknown, or it wraps around
        if not _is_real(expr):
            forward = math.trunc(forward[0]), math.trunc(forward[1])
        if isinstance(expr, Var) and not _is_real(expr):
            forward = _intersection(forward, INT32)
        return _intersection(forward, self.uses[expr]) if expr in self.uses else forward

    def _computed(self, expr: Expr) -> Interval | None:
        match expr:
            case Constant(data=data):
                return _extremes(data)
            case TupleGetItem(tuple_value=Call(op=Op(name=name, domain="")) as call, index=index):
                return self._result(call, name, index)
            case Call(op=Op(name=name, domain="")):
                value = known_value(expr)
                if value is not None and value.size:
                    return _extremes(value)
                return self._result(expr, name, 0)
            case _:
                return None

    def _result(self, call: Call, name: str, index: int) -> Interval | None:
        if name in _LENGTHS or (name, index) in _POSITIONS:
            return 0, (2**31 - 1 if name == "Size" else LONGEST_AXIS)
        if name in MOVING or name == "Cast":
            positions = MOVING.get(name, (0,))
            args = call.args if positions is None else [call.args[i] for i in positions if i < len(call.args)]
            return _union(self._forward.get(arg) for arg in args)
        rule = _RULES.get(name)
        intervals = [self._forward.get(arg) for arg in call.args]
        if rule is None or not intervals or intervals[0] is None:
            return None
        known = [item for item in intervals if item is not None]
        count = _count(call) if name.startswith("Reduce") or name == "CumSum" else len(known)
        interval = rule(known, count)
        return None if interval is None or any(map(math.isnan, interval)) else interval

    def _collect_uses(self, function: Function) -> None:
        """Walk from results to arguments, so that bounds reach what is only moved on the way."""
        for expr in reversed(tuple(_top_level(function))):
            if not isinstance(expr, Call) or not isinstance(expr.op, Op) or expr.op.domain:
                continue
            name = expr.op.name
            for position in CONSTANT_ARGUMENTS.get(name, ()) if name != "Range" else ():
                if position < len(expr.args):
                    self._narrow(expr.args[position], INT32)
            if name in _SELECTING and len(expr.args) > 1:
                self._narrow(expr.args[1], _rows(expr))
            if name in ("GatherND", "ScatterND") and len(expr.args) > 1:
                self._narrow(expr.args[1], INT32)
            if name in _WHOLE_MOVES and expr in self.uses:
                for arg in expr.args if name == "Concat" else expr.args[:1]:
                    self._narrow(arg, self.uses[expr])

    def _narrow(self, expr: Expr, interval: Interval) -> None:
        if not isinstance(expr, Constant) and type_interval(expr) is not None:
            self.uses[expr] = _intersection(self.uses.get(expr, interval), interval)


def _sources(expr: Expr) -> tuple[Expr, ...]:
    """Expressions whose intervals the one of an expression is computed from."""
    match expr:
        case TupleGetItem(tuple_value=Call() as call):
            return _sources(call)
        case Call(op=Op(name=name, domain=""), args=args) if (
            name in _RULES or name in MOVING or name == "Cast"
        ):
            return args
        case _:
            return ()


def _extremes(data: Array) -> Interval | None:
    """The interval of a constant; large tensors of real numbers are weights, which nothing here needs."""
    if data.dtype.kind in "biu":
        return (int(data.min()), int(data.max())) if data.size else (0, 0)
    if not data.size or data.size > LARGEST_KNOWN or not np.isfinite(data.astype(np.float64)).all():
        return None
    return float(data.min()), float(data.max())


def _is_real(expr: Expr) -> bool:
    return isinstance(expr.checked_type, TensorType) and expr.checked_type.dtype in _REAL


def _top_level(function: Function) -> Iterable[Expr]:
    """Expressions that are computed on every call: none in bodies of operators and branches."""
    inner = {item for item in post_order(function.body) if isinstance(item, Function)}
    return post_order(function.body, stop=inner)


def _rows(call: Call) -> Interval:
    """What may select along the axis of a table: negative numbers count from its end."""
    axis, type_ = call.attrs.get("axis", 0), call.args[0].checked_type
    if not isinstance(type_, TensorType) or type_.shape is None or not isinstance(axis, int):
        return INT32
    rows = type_.shape[axis] if -len(type_.shape) <= axis < len(type_.shape) else None
    return (-rows, max(0, rows - 1)) if isinstance(rows, int) else INT32


def _count(call: Call) -> int:
    """How many elements at most are summed to one."""
    type_ = call.args[0].checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return LONGEST_AXIS
    axes = known_value(call.args[1]) if len(call.args) > 1 else None
    dims = type_.shape if axes is None or not axes.size else [type_.shape[axis] for axis in axes.ravel()]
    return math.prod(dim if isinstance(dim, int) else LONGEST_AXIS for dim in dims)


def _is_within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _intersection(left: Interval, right: Interval) -> Interval:
    low, high = max(left[0], right[0]), min(left[1], right[1])
    return (low, high) if low <= high else left


def _union(intervals: Iterable[Interval | None]) -> Interval | None:
    known = [item for item in intervals if item is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def _largest(interval: Interval) -> float:
    return max(abs(interval[0]), abs(interval[1]))


_Rule: TypeAlias = Callable[[list[Interval], int], Interval | None]


def _sum(items: list[Interval], _count: int) -> Interval:
    return sum(low for low, _ in items), sum(high for _, high in items)


def _difference(items: list[Interval], _count: int) -> Interval | None:
    return (items[0][0] - items[1][1], items[0][1] - items[1][0]) if len(items) == 2 else None


def _product(items: list[Interval], _count: int) -> Interval | None:
    if len(items) != 2:
        return None
    corners = [left * right for left in items[0] for right in items[1]]
    return None if any(map(math.isnan, corners)) else (min(corners), max(corners))


def _total(items: list[Interval], count: int) -> Interval:
    low, high = items[0]
    return min(low, low * count), max(high, high * count)


def _squares(items: list[Interval], count: int) -> Interval:
    return 0, _largest(items[0]) ** 2 * count


def _magnitude(items: list[Interval], _count: int) -> Interval:
    return 0, _largest(items[0])


def _quotient(items: list[Interval], _count: int) -> Interval | None:
    low, high = items[0]
    if not all(isinstance(bound, int) for item in items for bound in item):
        smallest = max(items[-1][0], -items[-1][1])
        return (-_largest(items[0]) / smallest, _largest(items[0]) / smallest) if smallest > 0 else None
    return (0, high) if low >= 0 and items[-1][0] >= 0 else (-_largest(items[0]), _largest(items[0]))


def _remainder(items: list[Interval], _count: int) -> Interval:
    size = _largest(items[-1])
    return (0, size) if min(items[0][0], items[-1][0]) >= 0 else (-size, size)


def _clipped(items: list[Interval], _count: int) -> Interval:
    """The interval of the argument: bounds may be absent, or be known only at run time."""
    return items[0]


_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        "Add": _sum,
        "Sum": _sum,
        "Sub": _difference,
        "Mul": _product,
        "Div": _quotient,
        "Mod": _remainder,
        "Neg": lambda items, _: (-items[0][1], -items[0][0]),
        "Abs": _magnitude,
        "Sign": lambda items, _: (-1 if items[0][0] < 0 else 0, 1),
        "Relu": lambda items, _: (0, max(0, items[0][1])),
        "Clip": _clipped,
        **dict.fromkeys(("ReduceSum", "CumSum"), _total),
        "ReduceL1": lambda items, count: (0, _largest(items[0]) * count),
        "ReduceSumSquare": _squares,
        **dict.fromkeys(("ReduceMax", "ReduceMin", "ReduceMean"), lambda items, _: items[0]),
        **dict.fromkeys(("Ceil", "Floor", "Round"), lambda items, _: (items[0][0] - 1, items[0][1] + 1)),
        "Log": lambda *_: (-745, 710),  # of the smallest and the largest float64
        "Sqrt": lambda items, _: (0, math.sqrt(max(0.0, items[0][1]))),
        **dict.fromkeys(("Range", "Max", "Min"), lambda items, _: _union(items)),
    }
)
_LENGTHS = frozenset({"Shape", "Size"})
_POSITIONS = frozenset(
    {
        *(("ArgMax", 0), ("ArgMin", 0), ("TopK", 1), ("NonZero", 0), ("NonMaxSuppression", 0)),
        *(("MaxPool", 1), ("Unique", 1), ("Unique", 2), ("Unique", 3)),
    }
)
"""Operators and numbers of their results that are positions in their arguments."""

__all__ = ["INT32", "LONGEST_AXIS", "MOVING", "IntegerRanges", "Interval", "type_interval"]
