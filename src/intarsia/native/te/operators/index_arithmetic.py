"""Indices of tensors as expressions, as simple as possible, so that accesses stay easy to analyse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from intarsia.ir import DType
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, maximum, minimum, select

Indices: TypeAlias = tuple[Expression, ...]

ZERO = const(0, DType.INT64)


def front(axis: int, rank: int) -> int:
    """Return an axis that may count from the back, counted from the front."""
    return axis + rank if axis < 0 else axis


def scaled(index: Expression, factor: int, offset: int = 0) -> Expression:
    """Return `index * factor + offset` without operations that do nothing."""
    product = index if factor == 1 else index * factor
    if offset == 0:
        return product
    return product + offset if offset > 0 else product - (-offset)


def clamped(index: Expression, extent: int) -> Expression:
    """Return the nearest index inside an extent."""
    return ZERO if extent <= 1 else minimum(maximum(index, 0), extent - 1)


def wrapped(value: Expression, extent: int) -> Expression:
    """Return a loaded index counted from the front, clamped so that no read is out of bounds."""
    if value.dtype.value.startswith("uint"):
        return ZERO if extent <= 1 else minimum(value.astype(DType.INT64), extent - 1)
    index = value.astype(DType.INT64)
    return clamped(select(index < 0, index + extent, index), extent)


def flat(indices: Sequence[Expression], shape: Sequence[int]) -> Expression:
    """Return the row-major position of an element."""
    position: Expression | None = None
    for i, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        if extent == 1:
            continue
        term = scaled(index, math.prod(shape[i + 1 :]))
        position = term if position is None else position + term
    return ZERO if position is None else position


def unflattened(position: Expression, shape: Sequence[int]) -> Indices:
    """Return the indices of a row-major position."""
    indices: list[Expression] = []
    is_first = True
    for i, extent in enumerate(shape):
        if extent <= 1:
            indices.append(ZERO)
            continue
        stride = math.prod(shape[i + 1 :])
        index = position if stride <= 1 else position // stride
        # The most significant index needs no remainder: the position never exceeds the shape.
        indices.append(index if is_first else index % extent)
        is_first = False
    return tuple(indices)


def reshaped(indices: Sequence[Expression], shape: Sequence[int], wanted: Sequence[int]) -> Indices:
    """Return indices into an array of shape `wanted` of the element at `indices` of `shape`, row-major.

    Dimensions that the shapes have in common are passed through; only those between are taken apart.
    """
    if 0 in shape:
        return (ZERO,) * len(wanted)
    result = [ZERO] * len(wanted)
    sources = [i for i, extent in enumerate(shape) if extent != 1]
    targets = [i for i, extent in enumerate(wanted) if extent != 1]
    while sources:
        taken, given = _group(shape, sources, wanted, targets)
        position = flat([indices[i] for i in taken], [shape[i] for i in taken])
        parts = unflattened(position, [wanted[i] for i in given])
        for i, part in zip(given, parts, strict=True):
            result[i] = part
        del sources[: len(taken)], targets[: len(given)]
    return tuple(result)


def _group(
    shape: Sequence[int], sources: list[int], wanted: Sequence[int], targets: list[int]
) -> tuple[list[int], list[int]]:
    """Return the fewest leading dimensions of both that have the same number of elements."""
    left, right = 1, 1
    a, b = shape[sources[0]], wanted[targets[0]]
    while a != b:
        if a < b:
            a *= shape[sources[left]]
            left += 1
        else:
            b *= wanted[targets[right]]
            right += 1
    return sources[:left], targets[:right]
