"""Ranges that operators demand of integer arguments: rows of a table, lengths, sizes, truth values."""

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
"""Operators with results that are elements of the arguments at these positions."""

_COMPARISONS: Final = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual"})


@dataclass(frozen=True, slots=True)
class Demand:
    """The range that an operator demands of one integer argument.

    Attributes:
        low: Least valid integer.
        high: Least integer above the range.
        is_needed: Whether the operator fails outside of the range; otherwise such numbers are only
            meaningless.
    """

    low: int
    high: int
    is_needed: bool = True


MASK: Final = Demand(0, 2, is_needed=False)
SIZE: Final = Demand(0, 8)
"""Range of integers that sizes are computed from: larger ones would exhaust the memory."""


def demand_of(call: Call, position: int, users: Users) -> Demand | None:
    """Return the range that an operator demands of an argument; None if any integer is valid.

    Args:
        call: The operator's call.
        position: Position of the argument.
        users: The calls that use each value.
    """
    assert isinstance(call.op, Op)
    name = call.op.name
    if name in _RULES:
        return _RULES[name](call, position)
    if name == "Cast":
        return _demand_of_cast(call, users)
    if name in _COMPARISONS:
        positions = known_value(call.args[1 - position])
        if positions is not None and positions.size > 1 and positions.dtype.kind in "iu":
            return Demand(1, int(positions.max()) + 2, is_needed=False)  # a length
    return None


def _demand_of_cast(call: Call, users: Users) -> Demand | None:
    """Return MASK for a Cast to truth values, or to numbers that are subtracted from 1."""
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


def _of_selection(call: Call, position: int) -> Demand | None:
    return _within(_dim(call.args[0], _axis(call, 0))) if position == 1 else None


def _of_selection_by_coordinates(call: Call, position: int) -> Demand | None:
    dims, depth = _dims(call.args[0]), _dims(call.args[1])[-1:] or (0,)
    batch = _axis(call, 0, "batch_dims")
    return _within(min(dims[batch : batch + depth[0]], default=0)) if position == 1 else None


def _of_loss(call: Call, position: int) -> Demand | None:
    """Demand classes as labels, which lie along axis 1 of the scores."""
    return _within(_dim(call.args[0], 1)) if position == 1 else None


def _of_batch_of_boxes(call: Call, position: int) -> Demand | None:
    return _within(_dim(call.args[0], 0)) if position == 2 else None


def _of_unpooling(call: Call, position: int) -> Demand | None:
    """Demand indices of positions in the flattened result."""
    return _within(prod(_dims(call))) if position == 1 else None


def _of_rotation(call: Call, position: int) -> Demand | None:
    """Demand positions that are rows of the cosines."""
    return _within(_dim(call.args[1], 0)) if position == 3 else None


def _of_cache_update(call: Call, position: int) -> Demand | None:
    """Demand an index from which the written slice fits into the cache."""
    axis = _axis(call, -2)
    size, written = _dim(call.args[0], axis), _dim(call.args[1], axis)
    return _within(size - written + 1) if position == 2 and size and written else None


def _of_fourier_transform(call: Call, position: int) -> Demand | None:
    """Demand a positive length, and an axis other than the last one, the complex parts."""
    if position == 1:
        return _AMOUNT
    return _within(len(_dims(call.args[0])) - 1) if position == 2 else None


def _of_one_hot(call: Call, position: int) -> Demand | None:
    depth = known_value(call.args[1])
    if position == 1:
        return Demand(1, 8)
    return _within(int(depth.reshape(-1)[0])) if position == 0 and depth is not None and depth.size else None


def _of_recurrent(call: Call, position: int) -> Demand | None:
    return _length(_dim(call.args[0], 0)) if position == 4 else None


def _of_reversal(call: Call, position: int) -> Demand | None:
    return _length(_dim(call.args[0], _axis(call, 0, "time_axis"))) if position == 1 else None


def _of_top_k(call: Call, position: int) -> Demand | None:
    size = _dim(call.args[0], _axis(call, -1))
    return (_length(size) or Demand(1, 2)) if position == 1 else None


def _of_slice(call: Call, position: int) -> Demand | None:
    """Demand starts in the first half of the axis and ends in the second, so that the slice is not empty."""
    if position == 3:
        return _within(len(_dims(call.args[0])))
    if position == 4:
        return Demand(1, 3)
    axes = known_value(call.args[3]) if len(call.args) > 3 else None
    dims = _dims(call.args[0])
    if axes is not None:
        chosen = [dims[axis] for axis in axes.reshape(-1) if -len(dims) <= axis < len(dims)]
    else:
        chosen = list(dims[: max(_dims(call.args[position]), default=1)])
    half = max(1, min(chosen, default=0) // 2)
    if position not in (1, 2) or not all(chosen):
        return SIZE if position in (1, 2) else None
    return Demand(0, half) if position == 1 else Demand(half, min(chosen, default=1) + 1)


def _of_split(call: Call, position: int) -> Demand | None:
    """Demand equal parts: other sizes do not add up to the axis."""
    parts, size = _dim(call.args[1], 0) if len(call.args) > 1 else 0, _dim(call.args[0], _axis(call, 0))
    if position != 1:
        return None
    return Demand(size // parts, size // parts + 1) if parts and size and size % parts == 0 else SIZE


def _of_squeeze(call: Call, position: int) -> Demand | None:
    ones = [axis for axis, size in enumerate(_dims(call.args[0])) if size == 1]
    return Demand(ones[0], ones[0] + 1) if position == 1 and ones else None


def _of_axis(call: Call, position: int) -> Demand | None:
    return _within(len(_dims(call.args[0]))) if position == 1 else None


def _of_division(call: Call, position: int) -> Demand | None:
    """Demand a positive divisor: engines end the process at an integer division by zero."""
    type_ = call.checked_type
    is_integer = isinstance(type_, TensorType) and type_.dtype.is_integer
    return Demand(1, 2**31) if position == 1 and is_integer else None


def _of_bit_shift(call: Call, position: int) -> Demand | None:
    type_ = call.args[0].checked_type
    is_narrow = isinstance(type_, TensorType) and type_.dtype.value.endswith("8")
    return Demand(0, 8 if is_narrow else 16) if position == 1 else None


def _at(position: int, demand: Demand) -> Callable[[Call, int], Demand | None]:
    return lambda _, other: demand if other == position else None


_AMOUNT: Final = Demand(1, 8)
_REDUCTIONS: Final = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
_RANGE: Final = (Demand(0, 4), Demand(4, 12), Demand(1, 3))

_RULES: Final[Mapping[str, Callable[[Call, int], Demand | None]]] = {
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
    "Col2Im": lambda _, position: SIZE if position in (1, 2) else None,
    "ConstantOfShape": _at(0, SIZE),
    "Loop": _at(0, SIZE),
    "Resize": _at(3, _AMOUNT),
    "Range": lambda _, position: _RANGE[position],
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
"""Functions from a call and a position to its demand, by operator."""


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
    """Return the sizes of a value; 0 where they are unknown."""
    type_ = expr.checked_type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return ()
    return tuple(dim if isinstance(dim, int) else 0 for dim in type_.shape)
