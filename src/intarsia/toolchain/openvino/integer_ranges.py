"""Bounds of integer values: which values a program can compute, as far as its operators say.

Forward, by interval arithmetic (`integer_rules`): constants, lengths of axes, truth values, what is computed
from them. Backward, from uses: what selects rows of a table lies within it, so does what is a constant away
from it, and a shape is no larger than memory; else the program has no result at all.

Inputs of 64 bits are taken to be within 32 bits, or within the limits that the caller gives: a toolchain that
relies on this checks it at run time. An axis of unknown length is taken to have at most `LONGEST_AXIS`
elements, and a tensor at most `MOST_ELEMENTS`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeGuard

import numpy as np

from intarsia.ir import Call, Constant, DType, Expr, Function, Op, TensorType, TupleGetItem, Var, post_order
from intarsia.op.constant_argument import constant_arguments
from intarsia.op.known_value import LARGEST_KNOWN, known_value
from intarsia.runtime.kernel import Array
from intarsia.support.post_order import post_order_of
from intarsia.toolchain.openvino.integer_rules import RULES, Interval, union

NO_LIMITS: Final[Mapping[Expr, Interval]] = MappingProxyType({})
INT32: Final[Interval] = (-(2**31), 2**31 - 1)
LONGEST_AXIS: Final = 2**20
"""Elements of an axis of unknown length: a minute of sound, a picture of 1,048,576 pixels a side."""

MOST_ELEMENTS: Final = 2**31 - 1
"""Elements of a tensor: engines count them in 32 bits."""

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

    def __init__(self, function: Function | None = None, limits: Mapping[Expr, Interval] = NO_LIMITS) -> None:
        """Collect what the uses in a function say of its values.

        Args:
            function: The program; without it, only forward bounds are known.
            limits: Intervals of inputs that are checked at run time.
        """
        self.uses: dict[Expr, Interval] = {}
        self._limits = limits
        self._forward: dict[Expr, Interval | None] = {}
        if function is not None:
            self._collect_uses(function)

    def interval(self, expr: Expr) -> Interval | None:
        """The interval of an expression's values; None if it is no tensor of numbers."""
        for source in post_order_of((expr,), _sources, stop=self._forward):
            self._forward[source] = self._bound(source)
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
            forward = _intersection(forward, self._limits.get(expr, INT32))
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
            return 0, max(map(_longest_axis, call.args))
        if name in _COUNTS or (name, index) in _FLAT_POSITIONS:
            return 0, _most_elements(call.args[0])
        if name == "ReduceProd" and _is_shape(call.args[0]) and not call.attrs.get("noop_with_empty_axes"):
            return 0, _most_elements(call.args[0].args[0])
        if name == "ConstantOfShape":
            value = call.attrs.get("value")
            return _extremes(value.data) if isinstance(value, Constant) else None
        if name in MOVING or name == "Cast":
            positions = MOVING.get(name, (0,))
            args = call.args if positions is None else [call.args[i] for i in positions if i < len(call.args)]
            return union(self._forward.get(arg) for arg in args)
        rule = RULES.get(name)
        intervals = [self._forward.get(arg) for arg in call.args]
        if rule is None or not intervals or intervals[0] is None:
            return None
        bounds = [item for item in intervals if item is not None]
        if name == "Mod" and not call.attrs.get("fmod", 0) and bounds[-1][0] > 0 and bounds[0][0] < 0:
            bounds[0] = 0, math.inf  # the sign is that of the divisor
        count = _count(call) if name.startswith("Reduce") or name == "CumSum" else len(bounds)
        interval = rule(bounds, count)
        return None if interval is None or any(map(math.isnan, interval)) else interval

    def _collect_uses(self, function: Function) -> None:
        """Walk from results to arguments, so that bounds reach what is only moved on the way."""
        for expr in reversed(tuple(_top_level(function))):
            if not isinstance(expr, Call) or not isinstance(expr.op, Op) or expr.op.domain:
                continue
            name = expr.op.name
            for position in constant_arguments(expr) if name != "Range" else ():
                if position < len(expr.args):
                    self._narrow(expr.args[position], INT32)
            if name in _SELECTING and len(expr.args) > 1:
                self._narrow(expr.args[1], _rows(expr))
            if name in ("GatherND", "ScatterND") and len(expr.args) > 1:
                self._narrow(expr.args[1], INT32)
            if name == "RotaryEmbedding" and len(expr.args) > 3:  # rows of its tables
                self._narrow(expr.args[3], (0, _longest_axis(expr.args[1])))
            if name == "RoiAlign":
                self._narrow(expr.args[2], (0, _longest_axis(expr.args[0])))
            if expr in self.uses:
                self._collect_from_result(expr, name)

    def _collect_from_result(self, call: Call, name: str) -> None:
        """Carry the interval of a result to the arguments that it was moved or shifted from."""
        interval = self.uses[call]
        if name in _WHOLE_MOVES and (name != "Cast" or _is_widening(call)):
            for arg in call.args if name == "Concat" else call.args[:1]:
                self._narrow(arg, interval)
        if name in ("Add", "Sub") and len(call.args) == 2:
            for arg, other in (call.args, call.args[::-1]):
                shift = _extremes(other.data) if isinstance(other, Constant) and other.data.size else None
                if shift is not None:
                    self._narrow_within_type(arg, _unshifted(interval, shift, name, arg is call.args[0]))

    def _narrow_within_type(self, expr: Expr, interval: Interval) -> None:
        """Narrow where the interval lies within the type: elsewhere the sum may have wrapped around."""
        full = type_interval(expr)
        if full is not None and _is_within(interval, full):
            self._narrow(expr, interval)

    def _narrow(self, expr: Expr, interval: Interval) -> None:
        if not isinstance(expr, Constant) and type_interval(expr) is not None:
            self.uses[expr] = _intersection(self.uses.get(expr, interval), interval)


def _sources(expr: Expr) -> tuple[Expr, ...]:
    """Expressions whose intervals the one of an expression is computed from."""
    match expr:
        case TupleGetItem(tuple_value=Call() as call):
            return _sources(call)
        case Call(op=Op(name=name, domain=""), args=args) if (
            name in RULES or name in MOVING or name == "Cast"
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


def _longest_axis(expr: Expr) -> int:
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return LONGEST_AXIS
    return max((dim if isinstance(dim, int) else LONGEST_AXIS for dim in type_.shape), default=0)


def _most_elements(expr: Expr) -> int:
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return MOST_ELEMENTS
    most = math.prod(dim if isinstance(dim, int) else LONGEST_AXIS for dim in type_.shape)
    return most if type_.is_static else min(most, MOST_ELEMENTS)


def _is_shape(expr: Expr) -> TypeGuard[Call]:
    """Whether a value is the whole shape of a tensor; the product of a part may exceed all that exists."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or expr.op.name != "Shape":
        return False
    return not expr.op.domain and expr.attrs.get("start", 0) == 0 and expr.attrs.get("end") is None


def _is_widening(call: Call) -> bool:
    """Whether a cast keeps every value: only then a bound of the result is one of the argument."""
    before, after = type_interval(call.args[0]), type_interval(call)
    return before is not None and after is not None and _is_within(before, after)


def _unshifted(result: Interval, shift: Interval, name: str, is_first: bool) -> Interval:
    """The interval of an argument of a sum or difference, from that of the result and the other argument."""
    if name == "Add":
        return result[0] - shift[1], result[1] - shift[0]
    if is_first:  # argument - shift
        return result[0] + shift[0], result[1] + shift[1]
    return shift[0] - result[1], shift[1] - result[0]


def _is_within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _intersection(left: Interval, right: Interval) -> Interval:
    low, high = max(left[0], right[0]), min(left[1], right[1])
    return (low, high) if low <= high else left


_LENGTHS = frozenset({"Shape", "SequenceLength"})
_COUNTS = frozenset({"Size"})
_POSITIONS = frozenset({("ArgMax", 0), ("ArgMin", 0), ("TopK", 1), ("NonZero", 0), ("NonMaxSuppression", 0)})
"""Operators and numbers of their results that are positions on an axis of their arguments."""

_FLAT_POSITIONS = frozenset({("MaxPool", 1), ("Unique", 1), ("Unique", 2), ("Unique", 3)})
"""Those that are positions or counts among all elements of their first argument."""

__all__ = [
    "INT32",
    "LONGEST_AXIS",
    "MOST_ELEMENTS",
    "MOVING",
    "NO_LIMITS",
    "IntegerRanges",
    "Interval",
    "type_interval",
]
