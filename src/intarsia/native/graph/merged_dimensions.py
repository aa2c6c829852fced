"""Calls with as few dimensions as possible: neighbouring ones that all tensors share are one.

A sum of two images (N, C, H, W) is a sum of two vectors, and one of an image and a value for each channel
has the shape (N, C, H x W). Loops are longer then, and vectors are full: rows of two elements would fill a
quarter of a vector each. Normalizations keep the dimensions apart between which they distinguish.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from intarsia.ir import Call
from intarsia.native.graph.kernel_dag import KernelDag, kernel_dag
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.step_kind import StepKind, step_kind
from intarsia.native.graph.straight_line import KernelStep

_Shape = tuple[int, ...]

_OTHERS: Final = frozenset({"CastLike", "DequantizeLinear", "Expand", "QuantizeLinear"})
"""Elementwise operators with arguments that are not broadcast: vectors along an axis, shapes, examples."""


class _Bounds(NamedTuple):
    """The dimensions of a call that stay apart.

    Attributes:
        starts: Dimensions that are not merged with the one before.
        vectors: Positions of arguments with one dimension of their own, which is no dimension of the result.
        axis: Dimension that the attribute `axis` names; None if there is no such attribute.
        is_joined: Whether the arguments are parts of the result along `axis`, of any extent.
        is_split: Whether the results are parts of the argument along `axis`, of any extent.
    """

    starts: frozenset[int]
    vectors: tuple[int, ...] = ()
    axis: int | None = None
    is_joined: bool = False
    is_split: bool = False


def _by_channel(call: Call, rank: int) -> _Bounds:
    return _Bounds(frozenset(range(min(rank, 3))), tuple(range(1, len(call.args))))


def _along_axis(call: Call, rank: int) -> _Bounds:
    axis = _axis(call, rank)
    return _Bounds(frozenset({axis, axis + 1}), axis=axis)


def _from_axis(call: Call, rank: int) -> _Bounds:
    axis = _axis(call, rank)
    return _Bounds(frozenset({axis}), axis=axis)


def _joined_along_axis(call: Call, rank: int) -> _Bounds:
    axis = _axis(call, rank)
    return _Bounds(frozenset({axis}), axis=axis, is_joined=True)


def _split_along_axis(call: Call, rank: int) -> _Bounds:
    axis = _axis(call, rank)
    return _Bounds(frozenset({axis}), vectors=(1,), axis=axis, is_split=True)


def _to_shape(_call: Call, _rank: int) -> _Bounds:
    return _Bounds(frozenset(), vectors=(1,))


def _axis(call: Call, rank: int) -> int:
    axis = call.attrs.get("axis", -1)
    assert isinstance(axis, int)
    return axis % rank


_BOUNDS: Final[Mapping[str, Callable[[Call, int], _Bounds]]] = {
    "BatchNormalization": _by_channel,
    "Concat": _joined_along_axis,
    "Expand": _to_shape,
    "GroupNormalization": _by_channel,
    "InstanceNormalization": _by_channel,
    "LayerNormalization": _from_axis,
    "LogSoftmax": _along_axis,
    "RMSNormalization": _from_axis,
    "Softmax": _along_axis,
    "Split": _split_along_axis,
}
"""What distinguishes dimensions, by operator; results have at least the rank of the first argument."""


def merged_dimensions_dag(
    steps: Sequence[KernelStep], values: Sequence[RegionValue], outputs: Sequence[int]
) -> KernelDag | None:
    """Declare consecutive elementwise calls, Concats, Splits and normalizations on merged dimensions.

    Args:
        steps: Steps in order; a step may read results of earlier steps.
        values: Values of the region.
        outputs: Numbers of results of the steps that other groups need.

    Returns:
        None unless all calls are of these kinds and at least two dimensions are merged.
    """
    if any(step.op.domain or not _is_merged(step) for step in steps):
        return None
    shapes: dict[int, _Shape] = {}
    vectors: dict[int, _Shape] = {}
    bounds: dict[int, _Bounds] = {}
    for position, step in enumerate(steps):
        rule = _BOUNDS.get(step.op.name)
        if rule is not None:
            bounds[position] = rule(step.call, len(values[step.outputs[0]].type.static_shape))
        apart = bounds[position].vectors if position in bounds else ()
        for place, number in enumerate((*step.outputs, *step.args), -len(step.outputs)):
            if number is not None:
                (vectors if place in apart else shapes)[number] = values[number].type.static_shape
    ranks = {len(values[steps[position].outputs[0]].type.static_shape) for position in bounds}
    if shapes.keys() & vectors.keys() or ranks - {max(map(len, shapes.values()))}:
        return None
    parts = {
        (number, item.axis) for position, item in bounds.items() for number in _parts(steps[position], item)
    }
    groups = merged_axes(shapes, frozenset().union(*(item.starts for item in bounds.values())), parts)
    if groups is None:
        return None
    attrs = {
        position: steps[position].call.attrs.updated(axis=_group_of(item.axis, groups))
        for position, item in bounds.items()
        if item.axis is not None
    }
    return kernel_dag(
        steps, values, outputs, shapes={**merged_shapes(shapes, groups), **vectors}, attrs=attrs
    )


def _parts(step: KernelStep, bounds: _Bounds) -> Sequence[int | None]:
    """Return the numbers of the values that are parts of another one."""
    return step.args if bounds.is_joined else step.outputs if bounds.is_split else ()


def _is_merged(step: KernelStep) -> bool:
    if step.op.name in _BOUNDS:
        return len(step.outputs) == 1 or step.op.name == "Split"
    return is_broadcast(step)


def is_broadcast(step: KernelStep) -> bool:
    """Return whether a step is elementwise, and all of its arguments are broadcast to its result."""
    return step_kind(step) is StepKind.ELEMENTWISE and step.op.name not in _OTHERS


def _group_of(axis: int, groups: Sequence[Sequence[int]]) -> int:
    """Return the number of the group that begins with an axis."""
    return next(number for number, group in enumerate(groups) if group[0] == axis)


def merged_axes(
    shapes: Mapping[int, _Shape],
    starts: frozenset[int],
    parts: Container[tuple[int | None, int | None]] = (),
) -> list[list[int]] | None:
    """Return the dimensions of the result in groups that are merged; None if nothing can be merged.

    Dimensions of one element belong to no group, unless a group must begin there.

    Args:
        shapes: Shapes by number, all broadcast to one, or parts of it.
        starts: Dimensions that are not merged with the one before.
        parts: Numbers of parts, with the dimension along which they have any extent, 1 as well.
    """
    padded = _padded(shapes)
    whole = tuple(max(extents) for extents in zip(*padded.values(), strict=True))
    if 0 in whole:
        return None
    groups: list[list[int]] = []
    before: frozenset[int] | None = None
    for axis, extent in enumerate(whole):
        having = frozenset(
            number for number, shape in padded.items() if shape[axis] > 1 or (number, axis) in parts
        )
        if axis in starts:
            groups.append([axis])
            before = having or None
        elif extent > 1:
            if groups and (before is None or before == having):
                groups[-1].append(axis)
            else:
                groups.append([axis])
            before = having
    return groups if len(groups) < sum(extent > 1 for extent in whole) else None


def _padded(shapes: Mapping[int, _Shape]) -> dict[int, _Shape]:
    rank = max(map(len, shapes.values()))
    return {number: (1,) * (rank - len(shape)) + shape for number, shape in shapes.items()}


def merged_shapes(shapes: Mapping[int, _Shape], groups: Sequence[Sequence[int]]) -> dict[int, _Shape]:
    """Return the shapes with merged dimensions; that of a scalar stays."""
    padded = _padded(shapes)
    return {
        number: tuple(prod(padded[number][axis] for axis in group) for group in groups) if shape else shape
        for number, shape in shapes.items()
    }
