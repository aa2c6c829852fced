"""The cache lines that iterations of a phase touch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.ir.loop_walk import inner_scalars
from intarsia.ir.prim_func import LoopVar, Scalar
from intarsia.native.cores.phases import Phase
from intarsia.native.tir.accesses import ElementAccess
from intarsia.native.tir.affine import Affine, affine, bounds

Lines: TypeAlias = "npt.NDArray[np.int64]"
"""Numbers of cache lines, sorted, each once."""
_Box: TypeAlias = tuple[tuple[int, int], ...]
_NONE: Lines = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Touched:
    """What a range of iterations touches of a buffer.

    Attributes:
        name: Name of the buffer.
        is_written: Whether the iterations write the lines, or read them.
        lines: The lines, counted from the one that the buffer begins.
    """

    name: str
    is_written: bool
    lines: Lines


@dataclass(eq=False)
class TouchedLines:
    """The lines that a phase touches of each buffer.

    An access touches the smallest box of elements that holds all elements which its indices can reach, each
    index by itself; what a guard leaves out counts, as far as it is inside the buffer.

    Attributes:
        phase: The phase.
        names: Names of the buffers that count.
        line_bytes: Size of a line, in bytes.
    """

    phase: Phase
    names: Container[str]
    line_bytes: int
    _kept: dict[tuple[int, int], tuple[Touched, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        loop = self.phase.loop
        var = None if loop is None else loop.var
        groups: defaultdict[tuple[str, bool], list[_Access]] = defaultdict(list)
        for access in self.phase.accesses:
            if access.buffer.name in self.names:
                groups[access.buffer.name, access.is_store].append(_Access.of(access, var))
        self._groups = dict(groups)

    def of(self, begin: int, end: int) -> tuple[Touched, ...]:
        """Return what iterations `begin` to `end - 1` touch: reads and writes of each buffer."""
        kept = self._kept.get((begin, end))
        if kept is None:
            kept = self._kept[begin, end] = tuple(
                Touched(name, is_written, self._lines(group, begin, end))
                for (name, is_written), group in self._groups.items()
            )
        return kept

    def _lines(self, group: Sequence[_Access], begin: int, end: int) -> Lines:
        boxes = {
            (box, access.shape, access.item_bytes) for access in group for box in access.boxes(begin, end)
        }
        parts = [lines_of_box(*box, self.line_bytes) for box in boxes]
        return np.unique(np.concatenate(parts)) if parts else _NONE


@dataclass(frozen=True, slots=True)
class _Access:
    """An access with its indices as sums.

    Attributes:
        var: Counter of the parallel loop; None without one.
        is_stepwise: Whether the counter is only in a sum, so that several iterations touch one box.
    """

    shape: tuple[int, ...]
    item_bytes: int
    indices: tuple[Affine, ...]
    ranges: Mapping[LoopVar, tuple[int, int]]
    var: LoopVar | None
    is_stepwise: bool

    @classmethod
    def of(cls, access: ElementAccess, var: LoopVar | None) -> _Access:
        """Return the access of a phase whose loop has a counter."""
        indices = tuple(affine(index) for index in access.indices)
        inner = (scalar for index in indices for scalar in index.terms if scalar != var)
        is_stepwise = var is None or not any(_has(scalar, var) for scalar in inner)
        item = access.buffer.dtype.numpy.itemsize
        return cls(access.buffer.shape, item, indices, access.ranges, var, is_stepwise)

    def boxes(self, begin: int, end: int) -> Iterator[_Box]:
        """Yield the boxes of elements that a range of iterations touches."""
        steps = [(begin, end)] if self.is_stepwise else [(at, at + 1) for at in range(begin, end)]
        for first, behind in steps:
            ranges = dict(self.ranges)
            if self.var is not None:
                ranges[self.var] = first, behind - 1
            box = tuple(
                (max(0, low), min(extent - 1, high))
                for extent, (low, high) in zip(
                    self.shape, (bounds(index, ranges) for index in self.indices), strict=True
                )
            )
            if all(low <= high for low, high in box):
                yield box


def _has(scalar: Scalar, var: LoopVar) -> bool:
    return any(inner == var for inner in inner_scalars(scalar))


def lines_of_box(box: _Box, shape: Sequence[int], item_bytes: int, line_bytes: int) -> Lines:
    """Return the lines of a box of elements of a dense array that begins a line.

    Args:
        box: First and last index of each dimension.
        shape: Shape of the array.
        item_bytes: Size of an element, in bytes.
        line_bytes: Size of a line, in bytes.
    """
    run, dimension, stride = 1, len(shape), 1
    while dimension and run == stride:  # inner dimensions of which the box has all are one run
        dimension -= 1
        low, high = box[dimension]
        run *= high - low + 1
        stride *= shape[dimension]
    starts: npt.NDArray[Any] = np.zeros(1, np.int64)
    starts += box[dimension][0] * (stride // shape[dimension]) if shape else 0
    for outer in range(dimension - 1, -1, -1):
        low, high = box[outer]
        starts = (np.arange(low, high + 1)[:, None] * stride + starts).ravel()
        stride *= shape[outer]
    first = starts * item_bytes // line_bytes
    last = ((starts + run) * item_bytes - 1) // line_bytes
    numbers = first[:, None] + np.arange(int((last - first).max()) + 1)
    return np.unique(numbers[numbers <= last[:, None]])
