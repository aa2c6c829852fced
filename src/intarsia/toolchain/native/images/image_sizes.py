"""What a region for images of any size is for the sizes of a call: numbers, memory, and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from intarsia.native.execution.polynomial_table import PolynomialTable, of_linear
from intarsia.native.execution.size_reader import SizeReader
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.arena import Lifetime, plan_arena_by_size
from intarsia.support.errors import ExecutionError
from intarsia.support.machine_memory import machine_memory
from intarsia.toolchain.native.images.image_region import ImageRegion
from intarsia.toolchain.native.region import NativeRegion

_MOST_SIZE: Final = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class SizedImages:
    """A region for the sizes of a call.

    Attributes:
        numbers: Numbers that kernels are given.
        offsets: Offset of each place in the arena, in bytes.
        arena_bytes: Size of the arena.
        region: The region with parameters and results of these sizes.
    """

    numbers: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    arena_bytes: int
    region: NativeRegion


class ImageSizes:
    """The polynomials of a region, ready to be evaluated together.

    Args:
        whole: The region.
    """

    def __init__(self, whole: ImageRegion) -> None:
        self._whole, self._reader = whole, SizeReader(whole.table)
        entries = whole.table.sizes + len(whole.table.entries)
        shapes = [extent for shape in (*whole.params, *whole.results) for extent in shape]
        pairs = [extent for pair in whole.equal for extent in pair]
        groups = (
            [item.size for item in whole.storages],
            [begin for _, begin in whole.places],
            whole.numbers,
            *(list(map(of_linear, linears)) for linears in (shapes, whole.positive, pairs)),
        )
        self._sizes = PolynomialTable(groups[0], entries)
        self._all = PolynomialTable([polynomial for group in groups for polynomial in group], entries)
        self._ends = np.cumsum([len(group) for group in groups])[:-1]
        self._storages = np.array([storage for storage, _ in whole.places], np.int64)

    def at(self, sizes: Sequence[int]) -> SizedImages:
        """Return the region for the sizes of a call.

        Raises:
            ExecutionError: An image is too small or too large, or two that are combined differ in size.
        """
        whole = self._whole
        if not all(0 < size <= _MOST_SIZE for size in sizes):
            raise ExecutionError(
                f"native runs images of 1 to {_MOST_SIZE} rows and columns, found {_shown(sizes)}"
            )
        values = self._reader.values(sizes)
        if self._sizes.estimates(values).max(initial=0.0) > machine_memory():
            raise ExecutionError(f"images of {_shown(sizes)} need more memory than this machine has")
        storages, begins, numbers, extents, positive, pairs = np.split(self._all.values(values), self._ends)
        if positive.min(initial=1) < 1:
            raise ExecutionError(f"images of {_shown(sizes)} are too small: a layer would have no pixels")
        for left, right in pairs.reshape(-1, 2).tolist():
            if left != right:
                raise ExecutionError(
                    f"images of {_shown(sizes)} do not fit: a layer combines {left} with {right} pixels"
                )
        alive = [
            Lifetime(size, item.first, item.last)
            for size, item in zip(storages.tolist(), whole.storages, strict=True)
        ]
        plan = plan_arena_by_size(alive, ALIGNMENT)
        offsets = begins + np.array(plan.offsets, np.int64)[self._storages]
        return SizedImages(numbers, offsets, plan.size, self._region(extents.tolist()))

    def _region(self, extents: Sequence[int]) -> NativeRegion:
        """Return the region with ports of the given extents, one behind the other."""
        whole, rest = self._whole, iter(extents)
        params, results = (
            tuple(
                replace(port, shape=tuple(next(rest) for _ in shape))
                for port, shape in zip(ports, shapes, strict=True)
            )
            for ports, shapes in (
                (whole.region.params, whole.params),
                (whole.region.results, whole.results),
            )
        )
        return replace(whole.region, params=params, results=results)


def _shown(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))
