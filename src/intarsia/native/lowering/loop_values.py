"""Extents of the loops of a stage, and the values of its axes in terms of its loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Literal
from intarsia.native.loop_state.relation import FuseRelation, Relation, SplitRelation
from intarsia.native.tir.affine import Affine, Ranges, as_scalar
from intarsia.native.tir.integer_rules import floor_div, floor_mod
from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class Check:
    """A condition of a split that does not divide evenly: `value` is below `extent`."""

    value: Affine
    extent: int


def loop_extents(relations: Sequence[Relation], axes: Mapping[str, int]) -> dict[str, int]:
    """Return the extent of each loop, including loops that were split or fused since.

    A part of a split is at most as long as its parent.

    Args:
        relations: Splits and fusions from the axes to the loops, in order.
        axes: Extent of each axis here: a tile of a stage may be smaller than its shape.

    Raises:
        UsageError: A split length is not chosen.
    """
    extents = dict(axes)
    for relation in relations:
        if isinstance(relation, SplitRelation):
            parts_of_split = part_extents(relation, extents[relation.parent])
            extents.update(zip(relation.parts, parts_of_split, strict=True))
        else:
            fused = 1
            for part in relation.parts:
                fused *= extents[part]
            extents[relation.fused] = fused
    return extents


def part_extents(split: SplitRelation, extent: int) -> list[int]:
    """Return the extents of the parts of a split, outermost first."""
    lengths = chosen_lengths(split)
    if split.inner_to_outer:
        inner: list[int] = []
        for length in reversed(lengths):
            inner.append(min(length, extent))
            # -(-a // b) is a / b rounded up: the last part may be incomplete.
            extent = -(-extent // length)
        return [extent, *reversed(inner)]
    outer = []
    for length in lengths:
        piece = -(-extent // length)
        outer.append(min(length, -(-extent // piece)) if piece else 0)
        extent = piece
    return [*outer, extent]


def chosen_lengths(split: SplitRelation) -> tuple[int, ...]:
    """Return the lengths of a split.

    Raises:
        UsageError: One is not chosen, or below 1.
    """
    lengths = tuple([length for length in split.lengths if length is not None and length > 0])
    if len(lengths) != len(split.lengths):
        raise UsageError(
            f"a length of the split of loop {split.parent} is not chosen: found {split.lengths}",
            help="fill in every split length before lowering",
        )
    return lengths


def loop_values(
    relations: Sequence[Relation], extents: Mapping[str, int], given: Mapping[str, Affine], ranges: Ranges
) -> tuple[dict[str, Affine], list[Check]]:
    """Return the value of each axis, and of each loop between an axis and the given loops.

    Args:
        relations: Splits and fusions from the axes to the loops, in order.
        extents: Extents of all loops.
        given: Values of loops; values that depend on other loops are left out.
        ranges: Ranges of the loop variables in these values.

    Returns:
        Values by name, and conditions for them to be inside the axes.
    """
    values = dict(given)
    checks: list[Check] = []
    for relation in reversed(relations):
        if isinstance(relation, FuseRelation):
            if relation.fused in values:
                _take_apart(relation, extents, values, ranges)
        elif relation.parent not in values and all(part in values for part in relation.parts):
            parts = [values[part] for part in relation.parts]
            values[relation.parent] = _put_together(relation, extents, parts, checks)
    return values, checks


def _take_apart(
    fuse: FuseRelation, extents: Mapping[str, int], values: dict[str, Affine], ranges: Ranges
) -> None:
    left = values[fuse.fused]
    for part in reversed(fuse.parts[1:]):
        extent = extents[part]
        values[part] = Affine() if extent <= 1 else _remainder(left, extent, ranges)
        left = left if extent <= 1 else _quotient(left, extent, ranges)
    if fuse.parts:
        values[fuse.parts[0]] = left


def _put_together(
    split: SplitRelation, extents: Mapping[str, int], parts: Sequence[Affine], checks: list[Check]
) -> Affine:
    """Return the parent's value, from the innermost part outwards."""
    counts = [extents[part] for part in split.parts]
    extent = extents[split.parent]
    value, most = parts[-1], counts[-1]
    strides = _strides(split, extent)
    for position in range(len(parts) - 2, -1, -1):
        stride = strides[position]
        # The inner parts reach beyond the stride: without the check, two iterations would share a value.
        if most > stride:
            checks.append(Check(value, stride))
        most = (counts[position] - 1) * stride + min(most, stride)
        value = parts[position].times(stride).plus(value)  # mixed radix
    if most > extent:
        checks.append(Check(value, extent))
    return value


def _strides(split: SplitRelation, extent: int) -> list[int]:
    """Return by how much the parent's value grows with each part but the innermost one."""
    lengths = chosen_lengths(split)
    strides: list[int] = []
    if split.inner_to_outer:
        stride = 1
        for length in reversed(lengths):
            stride *= length
            strides.append(stride)
        return strides[::-1]
    for length in lengths:
        extent = -(-extent // length)
        strides.append(extent)
    return strides


def _quotient(value: Affine, by: int, ranges: Ranges) -> Affine:
    quotient = floor_div(value, by, DType.INT64, ranges)
    return _operation(ArithOp.FLOOR_DIV, value, by) if quotient is None else quotient


def _remainder(value: Affine, by: int, ranges: Ranges) -> Affine:
    remainder = floor_mod(value, by, DType.INT64, ranges)
    return _operation(ArithOp.FLOOR_MOD, value, by) if remainder is None else remainder


def _operation(op: ArithOp, value: Affine, by: int) -> Affine:
    return Affine({Arith(op, (as_scalar(value, DType.INT64), Literal(by, DType.INT64))): 1})
