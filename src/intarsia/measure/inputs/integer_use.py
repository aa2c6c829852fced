"""What integers that a program is given are used for: which numbers they may be.

A random index must be one of the table's, a mask is 0 or 1, a length is within its axis. The program says so:
each parameter is followed through operators that only move its values, to those that use them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    Op,
    TensorType,
    TupleGetItem,
    Var,
    children,
    post_order,
)

_MOVING: Final = {
    **dict.fromkeys(
        (
            *(
                "Reshape",
                "Squeeze",
                "Unsqueeze",
                "Identity",
                "Flatten",
                "Transpose",
                "Expand",
                "Slice",
                "Tile",
            ),
            *("Gather", "GatherND", "GatherElements", "Split", "Pad", "Trilu", "Clip"),
        ),
        (0,),
    ),
    "Where": (1, 2),
    "Concat": tuple(range(64)),
}
"""Operators whose results are values of the arguments at these places."""

_SIZES: Final = {
    **dict.fromkeys(
        ("Reshape", "Expand", "Tile", "TopK", "Pad", "OneHot", "Split", "Trilu", "CenterCropPad"), (1,)
    ),
    "ConstantOfShape": (0,),
    "Range": (0, 1, 2),
    "Slice": (1, 2, 3, 4),
    "Resize": (3,),
    "Loop": (0,),
    "Squeeze": (1,),
    "Unsqueeze": (1,),
    "CumSum": (1,),
    "AffineGrid": (1,),
    "Col2Im": (1, 2),
}
"""Arguments that sizes, positions or axes are read from."""

_LENGTHS: Final = {**dict.fromkeys(("LSTM", "GRU", "RNN"), 4), "ReverseSequence": 1}
_COMPARISONS: Final = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual"})


@dataclass(frozen=True, slots=True)
class IntegerUse:
    """Which integers an input may hold.

    Attributes:
        low: The least one.
        high: The first that is too large.
        is_certain: Whether the program says so; otherwise any number may do, and these are harmless.
    """

    low: int
    high: int
    is_certain: bool = True


UNKNOWN: Final = IntegerUse(0, 8, is_certain=False)
MASK: Final = IntegerUse(0, 2)
SIZE: Final = IntegerUse(0, 8)
"""What sizes are computed from stays small: they would fill the memory otherwise."""


def integer_uses(function: Function) -> dict[str, IntegerUse]:
    """How each integer parameter of a function is used, by name."""
    users: dict[Expr, list[Expr]] = defaultdict(list)
    for expr in post_order(function.body):
        for child in dict.fromkeys(children(expr)):
            users[child].append(expr)
    return {
        param.name: _use(param, users)
        for param in function.params
        if isinstance(param.checked_type, TensorType) and param.checked_type.dtype.is_integer
    }


def _use(param: Var, users: dict[Expr, list[Expr]]) -> IntegerUse:
    uses = [use for use in _uses(param, users) if use is not None]
    if not uses:
        return UNKNOWN
    return IntegerUse(max(use.low for use in uses), min(use.high for use in uses))


def _uses(param: Var, users: dict[Expr, list[Expr]]) -> Iterator[IntegerUse | None]:
    waiting: list[Expr] = [param]
    seen: set[Expr] = set()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        for user in users[value]:
            if isinstance(user, TupleGetItem):
                waiting.append(user)
            elif isinstance(user, Call) and isinstance(user.op, Op):
                for place, argument in enumerate(user.args):
                    if argument is not value:
                        continue
                    yield _use_in(user, place, users)
                    if place in _MOVING.get(user.op.name, ()) or _keeps_integers(user):
                        waiting.append(user)


def _keeps_integers(call: Call) -> bool:
    """Whether it is a Cast to another type of integers: what follows uses the same numbers."""
    type_ = call.checked_type
    is_cast = isinstance(call.op, Op) and call.op.name == "Cast"
    return is_cast and isinstance(type_, TensorType) and type_.dtype.is_integer


def _use_in(call: Call, place: int, users: dict[Expr, list[Expr]]) -> IntegerUse | None:
    assert isinstance(call.op, Op)
    name = call.op.name
    if name in ("Gather", "GatherElements", "ScatterElements", "Scatter") and place == 1:
        return _within(_dim(call.args[0], _axis(call, 0)))
    if name in ("GatherND", "ScatterND") and place == 1:
        dims = _dims(call.args[0])
        depth = _dims(call.args[1])[-1:] or (0,)
        batch = _axis(call, 0, "batch_dims")
        return _within(min(dims[batch : batch + depth[0]], default=0))
    if name == "OneHot" and place == 0:
        depth_value = call.args[1]
        return _within(int(depth_value.data.reshape(-1)[0])) if isinstance(depth_value, Constant) else None
    if place in _SIZES.get(name, ()):
        return SIZE
    if _LENGTHS.get(name) == place:
        steps = _dim(call.args[0], _axis(call, 0, "time_axis") if name == "ReverseSequence" else 0)
        return IntegerUse(1, steps + 1) if steps > 0 else None
    if name == "Cast" and isinstance(call.checked_type, TensorType):
        return _use_of_cast(call, call.checked_type, users)
    if name in _COMPARISONS:
        other = call.args[1 - place]
        if isinstance(other, Constant) and other.data.size > 1 and other.data.dtype.kind in "iu":
            return IntegerUse(1, int(other.data.max()) + 2)  # a length, compared with positions
    return None


def _use_of_cast(call: Call, type_: TensorType, users: dict[Expr, list[Expr]]) -> IntegerUse | None:
    """A mask is cast to truth values, or to numbers that are subtracted from 1."""
    if type_.dtype.is_integer:
        return None
    if not type_.dtype.is_float:
        return MASK
    waiting: list[Expr] = [call]
    while waiting:
        for user in users[waiting.pop()]:
            if not isinstance(user, Call) or not isinstance(user.op, Op):
                continue
            if user.op.name in _MOVING:
                waiting.append(user)
            first = user.args[0] if user.args else None
            if user.op.name == "Sub" and isinstance(first, Constant) and bool((first.data == 1).all()):
                return MASK
    return None


def _within(size: int) -> IntegerUse | None:
    return IntegerUse(0, size) if size > 0 else None


def _axis(call: Call, default: int, name: str = "axis") -> int:
    value = call.attrs.get(name, default)
    return value if isinstance(value, int) else default


def _dim(expr: Expr, axis: int) -> int:
    dims = _dims(expr)
    return dims[axis] if -len(dims) <= axis < len(dims) else 0


def _dims(expr: Expr) -> tuple[int, ...]:
    """The sizes of a value; 0 where they are not known."""
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return ()
    return tuple(dim if isinstance(dim, int) else 0 for dim in type_.shape)
