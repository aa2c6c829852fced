"""Which operators compute item by item: the rule for each that has one.

A tensor *carries* the batch in an axis if item i of the tensor is a slice of this axis: the first of as many
equal pieces as there are items, the second, and so on. A rule says in which axis the results of a call carry
the batch: then item i of them depends on item i of the arguments that carry it, and on nothing else of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.ir import ABSENT, Call, Expr, Op, TensorType, TupleType
from intarsia.op.known_value import known_value
from intarsia.op.operator_facts import LayoutKind
from intarsia.op.operator_table import facts_of
from intarsia.op.opset import ML_DOMAIN

ITEMS: Final = 1_000_003
"""A prime number of items by which programs are examined; its multiples are sizes of the batch."""

BatchAxis: TypeAlias = "int | tuple[int, ...] | None"
"""The axis in which a value carries the batch, that of each field for a tuple; None if it does not."""

ItemRule: TypeAlias = Callable[[Call, Sequence[int | None]], BatchAxis]
"""Given a call and the axes of its arguments, returns those of its results; None if it mixes items."""


def item_rule(op: Op) -> ItemRule | None:
    """Return the rule for an operator; None if it mixes items, or nothing is known of it."""
    if op.domain == ML_DOMAIN:
        return _OF_ML.get(op.name)
    if op.domain:
        return None
    return _BY_NAME.get(op.name) or _BY_LAYOUT.get(facts_of(op).layout)


def shape_of(expr: Expr) -> tuple[int, ...]:
    """Return the static shape of a value; that of the first field for a tuple."""
    type_ = expr.checked_type
    if isinstance(type_, TupleType):
        type_ = type_.fields[0]
    assert isinstance(type_, TensorType)
    return type_.static_shape


def _only_first(axes: Sequence[int | None]) -> int | None:
    """Return the axis of the first argument if no other one carries the batch."""
    return axes[0] if all(axis is None for axis in axes[1:]) else None


def _rank(call: Call, position: int = 0) -> int:
    return len(shape_of(call.args[position]))


def _same(call: Call, axis: int | None) -> BatchAxis:
    """Return the axis, for each result if there are several."""
    type_ = call.checked_type
    return (axis,) * len(type_.fields) if axis is not None and isinstance(type_, TupleType) else axis


def _same_axes(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    return _same(call, _only_first(axes))


def _rows(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Each row of the first axis by itself."""
    return _same(call, 0) if _only_first(axes) == 0 else None


def _image(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The first axis are images, the rest of it is one."""
    return _rows(call, axes) if shape_of(call)[0] == shape_of(call.args[0])[0] else None


def _aligned(call: Call, axes: Sequence[int | None]) -> int | None:
    """Axes are aligned at their ends; what carries no batch is the same for all items."""
    rank = len(shape_of(call))
    present = [(arg, axis) for arg, axis in zip(call.args, axes, strict=True) if arg.checked_type != ABSENT]
    aligned = {axis + rank - len(shape_of(arg)) for arg, axis in present if axis is not None}
    if len(aligned) != 1:
        return None
    (batch,) = aligned
    is_same_for_all = (_extent(arg, batch - rank) == 1 for arg, axis in present if axis is None)
    return batch if all(is_same_for_all) else None


def _extent(arg: Expr, from_end: int) -> int:
    """Return the extent of an axis counted from the end; 1 where the argument has no such axis."""
    shape = shape_of(arg)
    return shape[from_end] if -from_end <= len(shape) else 1


def _batch_normalization(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    return _image(call, axes) if call.attrs.get("training_mode", 0) == 0 else None


def _max_pool(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The indices, its second result, count the elements of all items."""
    return None if isinstance(call.checked_type, TupleType) else _image(call, axes)


def _along(default: int) -> ItemRule:
    """A rule for operators along the axis of the attribute, which may not be that of the batch."""

    def rule(call: Call, axes: Sequence[int | None]) -> BatchAxis:
        axis = _only_first(axes)
        if axis is None or axis == _attribute_axis(call, default, _rank(call)):
            return None
        return _same(call, axis)

    return rule


def _attribute_axis(call: Call, default: int, rank: int) -> int:
    axis = call.attrs.get("axis", default)
    assert isinstance(axis, int)
    return axis % max(rank, 1)


def _normalization(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Axes from that of the attribute on are normalized together."""
    axis = _only_first(axes)
    if axis is None or axis >= _attribute_axis(call, -1, _rank(call)):
        return None
    return _same(call, axis)


def _position(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """ArgMax and ArgMin: the axis of the attribute goes, unless it is kept."""
    axis, reduced = _only_first(axes), _attribute_axis(call, 0, _rank(call))
    if axis is None or axis == reduced:
        return None
    return axis if call.attrs.get("keepdims", 1) else axis - (reduced < axis)


def _reduction(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Axes are argument 1; without them all are reduced."""
    axis, named = _only_first(axes), _value(call, 1)
    if axis is None or named is None or named.size == 0:
        return None
    reduced = {int(item) % _rank(call) for item in named.reshape(-1).tolist()}
    if axis in reduced:
        return None
    return axis if call.attrs.get("keepdims", 1) else axis - sum(item < axis for item in reduced)


def _cumulation(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    axis, along = _only_first(axes), _value(call, 1)
    is_other = along is not None and axis != int(along.reshape(-1)[0]) % _rank(call)
    return axis if is_other else None


def _pad(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """The axis of the batch gets no elements, at neither end."""
    axis, pads, named = _only_first(axes), _value(call, 1), _value(call, 3)
    if axis is None or pads is None or (_has(call, 3) and named is None):
        return None
    padded = range(_rank(call)) if named is None else [int(item) % _rank(call) for item in named.tolist()]
    count = len(padded)
    added = [int(pads[at]) or int(pads[at + count]) for at, item in enumerate(padded) if item == axis]
    return None if any(added) else axis


def _resize(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    axis = _only_first(axes)
    return axis if axis is not None and shape_of(call)[axis] == shape_of(call.args[0])[axis] else None


def _slice(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Argument 3 names the axes, the first ones without it."""
    axis, named, starts = _only_first(axes), _value(call, 3), _value(call, 1)
    if axis is None or starts is None or (_has(call, 3) and named is None):
        return None
    cut = range(starts.size) if named is None else [int(item) % _rank(call) for item in named.tolist()]
    return None if axis in cut else axis


def _quantization(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    axis = _only_first(axes)
    is_one = all(np.prod(shape_of(arg)) == 1 for arg in call.args[1:] if arg.checked_type != ABSENT)
    return axis if is_one or axis != _attribute_axis(call, 1, _rank(call)) else None


def _reshaped(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Elements stay in their order: the batch is in the axis that begins where it began before."""
    axis = _only_first(axes)
    if axis is None:
        return None
    before, after = shape_of(call.args[0]), shape_of(call)
    outside = math.prod(before[:axis])
    fitting = (
        at
        for at, extent in enumerate(after)
        if extent and extent % ITEMS == 0 and math.prod(after[:at]) == outside
    )
    return next(fitting, None)


def _transposed(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    axis, perm = axes[0], call.attrs.get("perm")
    if axis is None:
        return None
    return perm.index(axis) if isinstance(perm, tuple) else _rank(call) - 1 - axis


def _concatenation(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    axis = axes[0]
    is_one = all(item == axis for item in axes)
    return axis if is_one and axis != _attribute_axis(call, 0, len(shape_of(call))) else None


def _gather(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Indices take the place of the axis along which is gathered."""
    data, indices = axes[:2]
    along = _attribute_axis(call, 0, _rank(call))
    if data is None:
        return None if indices is None else along + indices
    if indices is not None or data == along:
        return None
    return data if data < along else data + _rank(call, 1) - 1


def _gather_elements(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Arguments have the same axes, one of which is that of the attribute."""
    axis = axes[0]
    is_one = all(item == axis for item in axes)
    return axis if is_one and axis != _attribute_axis(call, 0, _rank(call)) else None


def _gather_nd(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Leading axes are those of both arguments, then indices are tuples in their last axis."""
    data, indices = axes[:2]
    leading = call.attrs.get("batch_dims", 0)
    assert isinstance(leading, int)
    if indices is None or indices == _rank(call, 1) - 1:
        return None
    if data is None:
        return indices if indices >= leading else None
    return indices if data == indices < leading else None


def _constant_of_shape(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    return _sized_axis(call) if axes[0] is None else None


def _expand(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """What carries no batch is repeated for each item."""
    if axes[1] is not None:
        return None
    rank = len(shape_of(call))
    sized = _sized_axis(call)
    if axes[0] is not None:
        return sized if sized == axes[0] + rank - _rank(call) else None
    return sized if sized is not None and _extent(call.args[0], sized - rank) == 1 else None


def _sized_axis(call: Call) -> int | None:
    """Return the one axis whose extent is a multiple of the items."""
    sized = [at for at, extent in enumerate(shape_of(call)) if extent and extent % ITEMS == 0]
    return sized[0] if len(sized) == 1 else None


def _tile(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    repeats = _value(call, 1)
    if repeats is None or axes[1] is not None:
        return None
    sized = _sized_axis(call)
    if axes[0] is not None:
        return sized if sized == axes[0] and int(repeats[sized]) == 1 else None
    return sized if sized is not None and shape_of(call.args[0])[sized] == 1 else None


def _one_hot(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    axis, along = _only_first(axes), _attribute_axis(call, -1, len(shape_of(call)))
    return None if axis is None else axis + (along <= axis)


def _squeeze(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    axis, gone = _only_first(axes), _value(call, 1)
    if axis is None:
        return None
    if gone is None:
        before = shape_of(call.args[0])
        return axis - sum(extent == 1 for extent in before[:axis])
    return axis - sum(int(item) % _rank(call) < axis for item in gone.reshape(-1).tolist())


def _unsqueeze(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    axis, added = _only_first(axes), _value(call, 1)
    if axis is None or added is None:
        return None
    rank = len(shape_of(call))
    places = {int(item) % rank for item in added.reshape(-1).tolist()}
    kept = [at for at in range(rank) if at not in places]
    return kept[axis]


def _product_of(left: int, right: int) -> ItemRule:
    """A rule for a product of matrices: rows, columns, or leading axes are items."""

    def rule(call: Call, axes: Sequence[int | None]) -> BatchAxis:
        if any(axis is not None for at, axis in enumerate(axes) if at not in {left, right}):
            return None
        ranks = _rank(call, left), _rank(call, right)
        if min(ranks) < 2:
            return None
        rank = max(ranks)
        first, second = _from_end(axes[left], ranks[0]), _from_end(axes[right], ranks[1])
        if first is not None and second is not None:
            return first + rank if first == second < -2 else None
        if first is not None:
            is_free = first == -2 or (first < -2 and _extent(call.args[right], first) == 1)
            return first + rank if is_free else None
        assert second is not None
        is_free = second == -1 or (second < -2 and _extent(call.args[left], second) == 1)
        return second + rank if is_free else None

    return rule


def _from_end(axis: int | None, rank: int) -> int | None:
    return None if axis is None else axis - rank


def _gemm(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Rows of the first matrix are items; what is added has one row for all, or one for each."""
    rows = 1 if call.attrs.get("transA", 0) else 0
    if axes[0] != rows or axes[1] is not None:
        return None
    if not _has(call, 2):
        return 0
    is_free = axes[2] == 0 if axes[2] is not None else _extent(call.args[2], -2) == 1
    return 0 if is_free else None


def _attention(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Queries, keys, values and past ones are of the item; a mask is, or is the same for all."""
    is_of_item = all(axes[at] == 0 for at in (0, 1, 2, 4, 5) if _has(call, at))
    if not is_of_item or any(axis is not None for axis in axes[6:]):
        return None
    if _has(call, 3):
        is_mask_of_item = axes[3] == 0 and _rank(call, 3) == 4
        if not (is_mask_of_item if axes[3] is not None else _extent(call.args[3], -4) == 1):
            return None
    return _same(call, 0)


def _rotary_embedding(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Positions are of the item, and the tables of cosines and sines are not; or there are no positions."""
    given = [axes[at] for at in range(len(axes)) if _has(call, at)]
    expected = [0, None, None, 0] if _has(call, 3) else [0, 0, 0]
    return 0 if given == expected else None


def _trilu(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    axis = _only_first(axes)
    return axis if axis is not None and axis < _rank(call) - 2 else None


def _grid_sample(_call: Call, axes: Sequence[int | None]) -> BatchAxis:
    return 0 if all(axis == 0 for axis in axes) else None


def _recurrent(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """X is (steps, batch, width), lengths are (batch,), states are (directions, batch, width)."""
    if call.attrs.get("layout", 0):
        return None
    expected = (1, None, None, None, 0, 1, 1, None)
    if any(
        axis != place for axis, place, at in zip(axes, expected, range(8), strict=False) if _has(call, at)
    ):
        return None
    type_ = call.checked_type
    return (2, 1, 1)[: len(type_.fields)] if isinstance(type_, TupleType) else 2


def _feature_extractor(call: Call, axes: Sequence[int | None]) -> BatchAxis:
    """Columns of a matrix that is the same for all items, by their indices."""
    return len(shape_of(call)) - 1 if axes[0] is None and axes[1] == 0 else None


def _has(call: Call, position: int) -> bool:
    return position < len(call.args) and call.args[position].checked_type != ABSENT


def _value(call: Call, position: int) -> npt.NDArray[Any] | None:
    return known_value(call.args[position]) if _has(call, position) else None


_BY_LAYOUT: Final[Mapping[LayoutKind, ItemRule]] = MappingProxyType(
    {
        LayoutKind.ELEMENTWISE: _aligned,
        LayoutKind.SAME_AXES: _same_axes,
        LayoutKind.IMAGE: _image,
        LayoutKind.LAST_AXIS: _along(-1),
        LayoutKind.FIRST_AXIS: _along(0),
        LayoutKind.POSITION: _position,
        LayoutKind.REDUCTION: _reduction,
        LayoutKind.CUMULATION: _cumulation,
        LayoutKind.QUANTIZATION: _quantization,
        LayoutKind.PAD: _pad,
        LayoutKind.RESIZE: _resize,
        LayoutKind.SLICE: _slice,
        LayoutKind.SQUEEZE: _squeeze,
    }
)
_BY_NAME: Final[Mapping[str, ItemRule]] = MappingProxyType(
    {
        "Attention": _attention,
        "BatchNormalization": _batch_normalization,
        "Concat": _concatenation,
        "ConstantOfShape": _constant_of_shape,
        "ConvInteger": _image,
        "Expand": _expand,
        "Flatten": _reshaped,
        "GRU": _recurrent,
        "Gather": _gather,
        "GatherElements": _gather_elements,
        "GatherND": _gather_nd,
        "Gemm": _gemm,
        "GridSample": _grid_sample,
        "LSTM": _recurrent,
        "LayerNormalization": _normalization,
        "MatMul": _product_of(0, 1),
        "MatMulInteger": _product_of(0, 1),
        "MaxPool": _max_pool,
        "OneHot": _one_hot,
        "QLinearConv": _image,
        "QLinearMatMul": _product_of(0, 3),
        "RMSNormalization": _normalization,
        "RNN": _recurrent,
        "Reshape": _reshaped,
        "RotaryEmbedding": _rotary_embedding,
        "ScatterElements": _gather_elements,
        "Tile": _tile,
        "Transpose": _transposed,
        "Trilu": _trilu,
        "Unsqueeze": _unsqueeze,
    }
)
"""Operators of which `LayoutKind` does not say enough."""
_OF_ML: Final[Mapping[str, ItemRule]] = MappingProxyType(
    {
        "ArrayFeatureExtractor": _feature_extractor,
        "LabelEncoder": _same_axes,
        **dict.fromkeys(
            (
                "Binarizer",
                "Imputer",
                "LinearClassifier",
                "LinearRegressor",
                "Normalizer",
                "SVMClassifier",
                "SVMRegressor",
                "Scaler",
                "TreeEnsemble",
                "TreeEnsembleClassifier",
                "TreeEnsembleRegressor",
            ),
            _rows,
        ),
    }
)
"""Operators of ai.onnx.ml: most compute each row of their input by itself."""
