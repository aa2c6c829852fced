"""What follows parallel branches: the same operator in each, with constants per channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from intarsia.ir import Attrs, Call, Constant, Expr, Op, Span, Tuple
from intarsia.op.layout import is_elementwise


@dataclass(frozen=True, slots=True)
class Channels:
    """How values of branches stand side by side.

    Attributes:
        axis: 1, or -1 for the last axis.
        sizes: Channels of each branch.
        rank: Rank of the values, if it is known.
    """

    axis: int
    sizes: tuple[int, ...]
    rank: int | None

    @property
    def trailing(self) -> int | None:
        """How many axes follow that of the channels, if that is known."""
        if self.axis == -1:
            return 0
        return None if self.rank is None else self.rank - 2


@dataclass(frozen=True, slots=True, eq=False)
class ParallelStage:
    """An operator that replaces one operator of each parallel branch.

    Attributes:
        op: The operator.
        attrs: Its attributes.
        data: Position of the argument that is computed.
        others: The other arguments.
        span: Location of the first branch's stage.
    """

    op: Expr
    attrs: Attrs
    data: int
    others: tuple[Expr, ...]
    span: Span | None


_SCALAR_ARGUMENTS = frozenset({"Clip"})
"""Operators whose other arguments cannot be one number per channel."""


def following_stage(
    before: Sequence[Call], calls: Sequence[Call], channels: Channels
) -> ParallelStage | None:
    """The operator that does for all branches what `calls` do for one each; None if there is none.

    Args:
        before: The calls whose results `calls` use.
        calls: One for each branch.
        channels: Arrangement of the branches' channels side by side.
    """
    first = calls[0]
    positions = {_position(call, data) for call, data in zip(calls, before, strict=True)}
    if len(positions) != 1 or not all(_same_operator(first, call) for call in calls):
        return None
    position = positions.pop()
    others = [call.args[:position] + call.args[position + 1 :] for call in calls]
    columns = list(zip(*others, strict=True))
    merged: list[Expr | None]
    if _is_inference_batch_norm(first) and position == 0 and channels.axis == 1:
        merged = [_side_by_side_vectors(column, channels) for column in columns]
    elif is_elementwise(first.op):
        merged = [_merged(column, channels, _may_vary(first.op)) for column in columns]
    else:
        return None
    arguments = tuple(item for item in merged if item is not None)
    if len(arguments) != len(merged):
        return None
    return ParallelStage(first.op, first.attrs, position, arguments, first.span)


def _position(call: Call, data: Expr) -> int:
    return next((i for i, arg in enumerate(call.args) if arg is data), -1)


def _same_operator(left: Call, right: Call) -> bool:
    return (
        isinstance(left.op, Op)
        and isinstance(right.op, Op)
        and (left.op.name, left.op.domain, left.op.virtual_device)
        == (right.op.name, right.op.domain, right.op.virtual_device)
        and left.attrs == right.attrs
        and len(left.args) == len(right.args)
    )


def _may_vary(op: Expr) -> bool:
    assert isinstance(op, Op)
    return op.name not in _SCALAR_ARGUMENTS


def _is_inference_batch_norm(call: Call) -> bool:
    assert isinstance(call.op, Op)
    is_batch_norm = call.op.name == "BatchNormalization" and not call.op.domain
    return is_batch_norm and not call.attrs.get("training_mode", 0)


def _constants(column: Sequence[Expr]) -> tuple[Constant, ...] | None:
    """The arguments as constants that can be joined: of one element type, on one device."""
    constants = tuple(item for item in column if isinstance(item, Constant))
    if len(constants) != len(column):
        return None
    kinds = {(item.data.dtype, item.virtual_device) for item in constants}
    return constants if len(kinds) == 1 else None


def _side_by_side_vectors(column: Sequence[Expr], channels: Channels) -> Constant | None:
    constants = _constants(column)
    if constants is None or any(
        item.data.shape != (size,) for item, size in zip(constants, channels.sizes, strict=True)
    ):
        return None
    return joined(constants, [item.data for item in constants], 0)


def _merged(column: Sequence[Expr], channels: Channels, may_vary: bool) -> Expr | None:
    """One argument for the same argument of each branch."""
    if all(isinstance(item, Tuple) and not item.fields for item in column):
        return column[0]  # absent in all
    constants = _constants(column)
    if constants is None:
        return None
    if all(_is_same_number(item, constants[0]) and _fits_rank(item, channels) for item in constants):
        return constants[0]
    trailing = channels.trailing
    if trailing is None or not may_vary:
        return None
    parts = [
        _per_channel(item.data, size, trailing) if _fits_rank(item, channels) else None
        for item, size in zip(constants, channels.sizes, strict=True)
    ]
    arrays = [part for part in parts if part is not None]
    return joined(constants, arrays, 0) if len(arrays) == len(parts) else None


def _is_same_number(item: Constant, first: Constant) -> bool:
    left, right = item.data, first.data
    return left.size == 1 and left.shape == right.shape and left.tobytes() == right.tobytes()


def _fits_rank(item: Constant, channels: Channels) -> bool:
    """Whether the constant cannot give the result more axes than the data has."""
    return item.data.ndim <= (1 if channels.rank is None else channels.rank)


def _per_channel(array: npt.NDArray[np.generic], size: int, trailing: int) -> npt.NDArray[np.generic] | None:
    """The constant as an array of shape (size, 1, ...); None if it varies over another axis."""
    shape = (1,) * (trailing + 1 - array.ndim) + array.shape
    channel = len(shape) - 1 - trailing
    if any(dim != 1 for axis, dim in enumerate(shape) if axis != channel) or shape[channel] not in (1, size):
        return None
    return np.broadcast_to(array.reshape(shape[channel:]), (size, *(1,) * trailing))


def joined(like: Sequence[Constant], arrays: Sequence[npt.NDArray[np.generic]], axis: int) -> Constant:
    """The arrays side by side, as a constant with span and device of the first of `like`."""
    first = like[0]
    return Constant(np.concatenate(arrays, axis), span=first.span, virtual_device=first.virtual_device)
