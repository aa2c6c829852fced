"""Packing of tensors into tiles, so that elements that are read together are contiguous."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Literal, Scalar
from intarsia.support.page_memory import allocate_pages

_LARGE: Final = 1 << 16
"""Size in bytes from which a transposed matrix is packed from where it is."""


@dataclass(frozen=True, slots=True)
class Part:
    """An axis of a packed tensor.

    Attributes:
        axis: Axis of the original that it is a part of.
        extent: Its extent.
    """

    axis: int
    extent: int


@dataclass(frozen=True, slots=True)
class Packing:
    """The packed layout of a tensor.

    The parts of an original axis are the digits of its index, the first one the most significant. They may
    cover more than the axis: the rest is padding that is never read.

    Attributes:
        tensor_name: Name of the tensor that is packed.
        shape: The original shape.
        parts: The axes of the packed tensor, outermost first.
    """

    tensor_name: str
    shape: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def packed_shape(self) -> tuple[int, ...]:
        """The shape of the packed tensor."""
        return tuple(part.extent for part in self.parts)

    def of_transpose(self) -> Packing:
        """Return the packing that gives the transpose of a matrix what this one gives the matrix."""
        parts = tuple(replace(part, axis=1 - part.axis) for part in self.parts)
        return replace(self, shape=self.shape[::-1], parts=parts)

    @property
    def keeps_layout(self) -> bool:
        """Whether every element stays where it is."""
        long = [part for part in self.parts if part.extent > 1]
        return [part.axis for part in long] == sorted(part.axis for part in long) and not self.pads

    @property
    def pads(self) -> bool:
        """Whether there is padding."""
        return any(self._covered(axis) > extent for axis, extent in enumerate(self.shape))

    def _covered(self, axis: int) -> int:
        return math.prod(part.extent for part in self.parts if part.axis == axis)

    def _divisors(self) -> tuple[int, ...]:
        """Return by how much the original index grows with each part: mixed-radix place values."""
        running = dict.fromkeys(range(len(self.shape)), 1)
        divisors = []
        for part in reversed(self.parts):
            divisors.append(running[part.axis])
            running[part.axis] *= part.extent
        return tuple(reversed(divisors))

    def packed_indices(self, indices: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """Return the index in the packed tensor of an element of the original."""
        digits = []
        for part, divisor in zip(self.parts, self._divisors(), strict=True):
            index = _by(ArithOp.FLOOR_DIV, indices[part.axis], divisor)
            # The most significant digit needs no remainder: the index never exceeds the axis.
            is_first = divisor * part.extent >= self.shape[part.axis]
            digits.append(index if is_first else _by(ArithOp.FLOOR_MOD, index, part.extent))
        return tuple(
            _number(0) if part.extent == 1 else index for part, index in zip(self.parts, digits, strict=True)
        )

    def original_indices(self, indices: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """Return the index in the original of an element of the packed tensor; out of bounds for padding."""
        sums: list[Scalar | None] = [None] * len(self.shape)
        for part, divisor, index in zip(self.parts, self._divisors(), indices, strict=True):
            term = index if divisor == 1 else Arith(ArithOp.MUL, (index, _number(divisor)))
            before = sums[part.axis]
            sums[part.axis] = term if before is None else Arith(ArithOp.ADD, (before, term))
        return tuple(_number(0) if total is None else total for total in sums)

    def pack(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the packed elements of an array of the original shape, with zeros as padding; aligned.

        Elements are written once, where they stay: there is no padded copy.
        """
        size = math.prod(self.packed_shape) * array.dtype.itemsize
        packed: npt.NDArray[Any] = allocate_pages(size).view(array.dtype).reshape(self.packed_shape)
        order = sorted(range(len(self.parts)), key=lambda position: self.parts[position].axis)
        digits = packed.transpose(order)
        extents = [
            [part.extent for part in self.parts if part.axis == axis] for axis in range(len(self.shape))
        ]
        boxes = [_boxes(extent, parts) for extent, parts in zip(self.shape, extents, strict=True)]
        for box in itertools.product(*boxes):
            original = array[tuple(slice(item.begin, item.end) for item in box)]
            shape = [extent for item in box for extent in item.shape]
            np.copyto(digits[tuple(index for item in box for index in item.digits)], original.reshape(shape))
        return packed


def is_transposed(array: npt.NDArray[Any]) -> bool:
    """Return whether an array is the transposed view of a large matrix, whose elements are better not copied.

    `Packing.of_transpose` packs them from where they are.
    """
    is_large = array.ndim == 2 and array.nbytes >= _LARGE
    return is_large and array.flags.f_contiguous and not array.flags.c_contiguous


@dataclass(frozen=True, slots=True)
class _Box:
    """A range of indices of an axis that is a box of digits.

    Attributes:
        begin: First index.
        end: Index behind the last one.
        digits: Range of each digit.
        shape: Number of values of each digit.
    """

    begin: int
    end: int
    digits: tuple[slice, ...]
    shape: tuple[int, ...]


def _boxes(extent: int, parts: Sequence[int]) -> list[_Box]:
    """Return the boxes that an axis of some extent consists of, the largest first.

    Args:
        extent: Number of indices.
        parts: Extents of the digits, the most significant first; they may cover more indices. An axis of one
            index may have none.
    """
    if not parts:
        return [_Box(0, extent, (), ())]
    boxes: list[_Box] = []
    begin = 0
    leading: tuple[slice, ...] = ()
    for number in range(len(parts)):
        below = tuple(parts[number + 1 :])
        divisor = math.prod(below)
        count = (extent - begin) // divisor
        if count:
            end = begin + count * divisor
            digits = (*leading, slice(0, count), *(slice(0, part) for part in below))
            boxes.append(_Box(begin, end, digits, (*[1] * number, count, *below)))
            begin = end
        leading = (*leading, slice(count, count + 1))
    return boxes


def _number(value: int) -> Literal:
    return Literal(value, DType.INT64)


def _by(op: ArithOp, index: Scalar, value: int) -> Scalar:
    return index if value == 1 and op is ArithOp.FLOOR_DIV else Arith(op, (index, _number(value)))
