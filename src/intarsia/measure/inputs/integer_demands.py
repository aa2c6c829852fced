"""What operators demand of integers that they are given: rows of a table, lengths, sizes, truth values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from intarsia.ir import Call, Expr, Op, TensorType
from intarsia.op.known_value import known_value

Users = Mapping[Expr, list[Expr]]

MOVING: Final = {
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
            *("Gather", "GatherND", "GatherElements", "Split", "Pad", "Trilu"),
        ),
        (0,),
    ),
    "Where": (1, 2),
    "Concat": tuple(range(64)),
}
"""Operators whose results are values of the arguments at these places."""

_COMPARISONS: Final = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual"})


@dataclass(frozen=True, slots=True)
class Demand:
    """What an operator demands of the integers at one place.

    Attributes:
        low: The least one.
        high: The first that is too large.
        is_needed: Whether the operator fails on other numbers; otherwise they only make no sense.
    """

    low: int
    high: int
    is_needed: bool = True


MASK: Final = Demand(0, 2, is_needed=False)
SIZE: Final = Demand(0, 8)
"""What sizes are computed from stays small: they would fill the memory otherwise."""


def demand_of(call: Call, place: int, users: Users) -> Demand | None:
    """What an operator demands of an argument; None if any number will do.

    Args:
        call: The operator's call.
        place: Position of the argument.
        users: The calls that use each value.
    """
    assert isinstance(call.op, Op)
    name = call.op.name
    if name in _PLACED:
        return _PLACED[name](call, place)
    if name == "Cast":
        return _demand_of_cast(call, users)
    if name in _COMPARISONS:
        positions = known_value(call.args[1 - place])
        if positions is not None and positions.size > 1 and positions.dtype.kind in "iu":
            return Demand(1, int(positions.max()) + 2, is_needed=False)  # a length
    return None


def _demand_of_cast(call: Call, users: Users) -> Demand | None:
    """A mask is cast to truth values, or to numbers that are subtracted from 1."""
    type_ = call.checked_type
    if not isinstance(type_, TensorType) or type_.dtype.is_integer:
        return None
    if not type_.dtype.is_float:
        return MASK
    waiting: list[Expr] = [call]
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if not isinstance(user, Call) or not isinstance(user.op, Op):
                continue
            if user.op.name in MOVING:
                waiting.append(user)
            first = known_value(user.args[0]) if user.args else None
            if user.op.name == "Sub" and first is not None and first.size and bool((first == 1).all()):
                return MASK
    return None


def _of_selection(call: Call, place: int) -> Demand | None:
    return _within(_dim(call.args[0], _axis(call, 0))) if place == 1 else None


def _of_selection_by_coordinates(call: Call, place: int) -> Demand | None:
    dims, depth = _dims(call.args[0]), _dims(call.args[1])[-1:] or (0,)
    batch = _axis(call, 0, "batch_dims")
    return _within(min(dims[batch : batch + depth[0]], default=0)) if place == 1 else None


def _of_loss(call: Call, place: int) -> Demand | None:
    """Labels are classes, which lie along axis 1 of the scores."""
    return _within(_dim(call.args[0], 1)) if place == 1 else None


def _of_batch_of_boxes(call: Call, place: int) -> Demand | None:
    return _within(_dim(call.args[0], 0)) if place == 2 else None


def _of_unpooling(call: Call, place: int) -> Demand | None:
    """Indices are positions in the whole result, flattened."""
    return _within(prod(_dims(call))) if place == 1 else None


def _of_rotation(call: Call, place: int) -> Demand | None:
    """Positions are rows of the cosines."""
    return _within(_dim(call.args[1], 0)) if place == 3 else None


def _of_cache_update(call: Call, place: int) -> Demand | None:
    """What is written from an index on has to fit into the cache."""
    axis = _axis(call, -2)
    size, written = _dim(call.args[0], axis), _dim(call.args[1], axis)
    return _within(size - written + 1) if place == 2 and size and written else None


def _of_fourier_transform(call: Call, place: int) -> Demand | None:
    """A length is positive; the last axis holds the parts of complex numbers and is not transformed."""
    if place == 1:
        return _AMOUNT
    return _within(len(_dims(call.args[0])) - 1) if place == 2 else None


def _of_one_hot(call: Call, place: int) -> Demand | None:
    depth = known_value(call.args[1])
    if place == 1:
        return Demand(1, 8)
    return _within(int(depth.reshape(-1)[0])) if place == 0 and depth is not None and depth.size else None


def _of_recurrent(call: Call, place: int) -> Demand | None:
    return _length(_dim(call.args[0], 0)) if place == 4 else None


def _of_reversal(call: Call, place: int) -> Demand | None:
    return _length(_dim(call.args[0], _axis(call, 0, "time_axis"))) if place == 1 else None


def _of_top_k(call: Call, place: int) -> Demand | None:
    size = _dim(call.args[0], _axis(call, -1))
    return (_length(size) or Demand(1, 2)) if place == 1 else None


def _of_slice(call: Call, place: int) -> Demand | None:
    """Starts lie in the first half of the axis and ends in the second, so that something is left."""
    if place == 3:
        return _within(len(_dims(call.args[0])))
    if place == 4:
        return Demand(1, 3)
    axes = known_value(call.args[3]) if len(call.args) > 3 else None
    dims = _dims(call.args[0])
    if axes is not None:
        chosen = [dims[axis] for axis in axes.reshape(-1) if -len(dims) <= axis < len(dims)]
    else:
        chosen = list(dims[: max(_dims(call.args[place]), default=1)])
    half = max(1, min(chosen, default=0) // 2)
    if place not in (1, 2) or not all(chosen):
        return SIZE if place in (1, 2) else None
    return Demand(0, half) if place == 1 else Demand(half, min(chosen, default=1) + 1)


def _of_split(call: Call, place: int) -> Demand | None:
    """Equal parts: other sizes do not add up to the axis."""
    parts, size = _dim(call.args[1], 0) if len(call.args) > 1 else 0, _dim(call.args[0], _axis(call, 0))
    if place != 1:
        return None
    return Demand(size // parts, size // parts + 1) if parts and size and size % parts == 0 else SIZE


def _of_squeeze(call: Call, place: int) -> Demand | None:
    ones = [axis for axis, size in enumerate(_dims(call.args[0])) if size == 1]
    return Demand(ones[0], ones[0] + 1) if place == 1 and ones else None


def _of_axis(call: Call, place: int) -> Demand | None:
    return _within(len(_dims(call.args[0]))) if place == 1 else None


def _of_division(call: Call, place: int) -> Demand | None:
    """Engines end the process where an integer is divided by zero."""
    type_ = call.checked_type
    is_integer = isinstance(type_, TensorType) and type_.dtype.is_integer
    return Demand(1, 2**31) if place == 1 and is_integer else None


def _of_bit_shift(call: Call, place: int) -> Demand | None:
    type_ = call.args[0].checked_type
    is_narrow = isinstance(type_, TensorType) and type_.dtype.value.endswith("8")
    return Demand(0, 8 if is_narrow else 16) if place == 1 else None


def _at(place: int, demand: Demand) -> Callable[[Call, int], Demand | None]:
    return lambda _, other: demand if other == place else None


_AMOUNT: Final = Demand(1, 8)
_REDUCTIONS: Final = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
_RANGE: Final = (Demand(0, 4), Demand(4, 12), Demand(1, 3))

_PLACED: Final[Mapping[str, Callable[[Call, int], Demand | None]]] = {
    **dict.fromkeys(("Gather", "GatherElements", "ScatterElements", "Scatter"), _of_selection),
    **dict.fromkeys(("GatherND", "ScatterND"), _of_selection_by_coordinates),
    **dict.fromkeys(("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"), _of_loss),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _of_recurrent),
    **dict.fromkeys(_REDUCTIONS, _of_axis),
    **dict.fromkeys(("Div", "Mod"), _of_division),
    **dict.fromkeys(("Reshape", "Trilu"), _at(1, SIZE)),
    **dict.fromkeys(("AffineGrid", "CenterCropPad"), _at(1, _AMOUNT)),
    "Tile": _at(1, Demand(1, 4)),
    "Expand": _at(1, Demand(1, 2)),  # a size of 1 fits every axis
    "Pad": _at(1, Demand(0, 4)),
    "Col2Im": lambda _, place: SIZE if place in (1, 2) else None,
    "ConstantOfShape": _at(0, SIZE),
    "Loop": _at(0, SIZE),
    "Resize": _at(3, _AMOUNT),
    "Range": lambda _, place: _RANGE[place],
    "BitShift": _of_bit_shift,
    "OneHot": _of_one_hot,
    "ReverseSequence": _of_reversal,
    "TopK": _of_top_k,
    "Slice": _of_slice,
    "Split": _of_split,
    "Squeeze": _of_squeeze,
    "Unsqueeze": _of_axis,
    "CumSum": _of_axis,
    "CumProd": _of_axis,
    "DFT": _of_fourier_transform,
    "MaxUnpool": _of_unpooling,
    "RoiAlign": _of_batch_of_boxes,
    "RotaryEmbedding": _of_rotation,
    "TensorScatter": _of_cache_update,
}
"""Rules by operator."""


def _within(size: int) -> Demand | None:
    return Demand(0, size) if size > 0 else None


def _length(size: int) -> Demand | None:
    return Demand(1, size + 1) if size > 0 else None


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
