"""Measure the noise of an output: how much correct engines differ in each of its parts.

The noise of an output is not one number: errors grow with the terms of sums, which differ by channel, row and
magnitude. So it is measured for each slice of the output separately: on every index of every
axis, on rows and planes of batches, and on groups of elements of similar magnitude (octaves). Formulas and
constants are those of `docs/judge.md`, tuned on 1,675 planted faults and 588 correct results of 19 models.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]

FLOOR: Final = 8.0
"""Least assumed noise, in machine epsilons of the values: runs may agree by chance."""

_SMALLEST_SLICE: Final = 8
"""Least number of elements of a slice."""
_MERGED: Final = 8
"""Number of elements up to which octaves are merged into a group."""
_SMALLEST_BIN: Final = 3
"""Least number of elements of a group."""
_MOST_OCTAVES: Final = 6
"""Maximum number of octaves of a group."""


@dataclass(frozen=True, slots=True)
class SliceNoise:
    """The noise of all slices of one kind.

    Attributes:
        axes: Axes of which each index is a slice; () for the whole output.
        sigma: Noise of each slice in the output's units, with ones for the other axes.
        count: Number of elements of a slice.
    """

    axes: tuple[int, ...]
    sigma: Floats
    count: int

    def other_axes(self, rank: int) -> tuple[int, ...]:
        """Return the axes within a slice."""
        return tuple(axis for axis in range(rank) if axis not in self.axes)


@dataclass(frozen=True, slots=True)
class BinNoise:
    """The noise of groups of elements of similar magnitude.

    Attributes:
        bins: Number of the group of each element, flat; -1 for elements of groups that are too small.
        sigma: Noise of each group: the maximum of the group and its neighbours.
        count: Number of elements of each group.
        low: Smallest magnitude of each group; 0 for exact zeros.
        high: Largest magnitude of each group.
    """

    bins: Integers
    sigma: Floats
    count: Integers
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class NoiseProfile:
    """The noise of one output.

    Attributes:
        expected: The reference result, without what is not finite (0 there).
        spread: Largest difference of a judge from it, by element; 0 where it is not finite.
        eps: Machine epsilon of the output's type.
        scale: Factor of all noise; above 1 where a user allows more.
        least_bin_sigma: Smallest noise of a group of similar magnitude.
    """

    expected: Floats
    spread: Floats
    eps: float
    scale: float = 1.0
    least_bin_sigma: float = 0.0

    def allowing(self, bound: float) -> NoiseProfile:
        """Return the profile for an error bound, a fraction of the norm; the noise keeps its shape."""
        size = _rms(self.expected)
        sigma = float(self._sigma((), 1.0).sigma.max(initial=0.0))
        scale = max(1.0, bound * size / sigma) if sigma else 1.0
        return replace(self, scale=scale, least_bin_sigma=bound * size)

    @cached_property
    def slices(self) -> tuple[SliceNoise, ...]:
        """Noise of the whole output, indices of axes, rows of batched matrices, and planes of images."""
        shape = self.expected.shape
        kinds: list[tuple[int, ...]] = [(axis,) for axis, size in enumerate(shape) if size > 1]
        if len(shape) == 3 and shape[0] > 1:
            kinds.append((0, 1))
        if len(shape) >= 4 and shape[0] > 1:
            kinds.append((0, 1))
        large = [axes for axes in kinds if self._count(axes) >= _SMALLEST_SLICE]
        return tuple(self._sigma(axes, self.scale) for axes in ((), *large))

    def _count(self, axes: tuple[int, ...]) -> int:
        slices = prod(int(self.expected.shape[axis]) for axis in axes)
        return int(self.expected.size) // max(1, slices)

    def _sigma(self, axes: tuple[int, ...], scale: float) -> SliceNoise:
        others = tuple(axis for axis in range(self.expected.ndim) if axis not in axes)
        noise, size = slice_rms(self.spread, others), slice_rms(self.expected, others)
        sigma = scale * np.maximum(noise, FLOOR * self.eps * size)
        return SliceNoise(axes, sigma, self._count(axes))

    @cached_property
    def bins(self) -> BinNoise:
        """Noise of groups of similar magnitude."""
        sizes, noise = np.abs(self.expected).reshape(-1), self.spread.reshape(-1)
        exponents = np.frexp(sizes)[1].astype(np.intp)
        zero = sizes == 0
        base = int(exponents[~zero].min()) if not zero.all() else 0
        # Octave 0 is that of exact zeros.
        octaves: Integers = np.where(zero, 0, exponents - base + 1).astype(np.intp)
        counts = np.bincount(octaves)
        group_of = _grouped(counts)
        groups: Integers = group_of[octaves]
        count = np.bincount(groups, minlength=int(group_of.max()) + 1)
        sums = [np.bincount(groups, values * values, count.size) for values in (noise, sizes)]
        rms = [np.sqrt(total / np.maximum(count, 1)) for total in sums]
        measured = np.maximum(rms[0], FLOOR * self.eps * rms[1])
        padded = np.pad(measured, 1)
        # A value near the border of two groups is in the one or the other by chance.
        sigma = np.maximum(np.maximum(padded[:-2], padded[2:]), measured)
        sigma = np.maximum(self.scale * sigma, self.least_bin_sigma)
        low, high = _ranges(group_of, counts, base)
        used = np.where((count >= _SMALLEST_BIN)[groups], groups, -1)
        return BinNoise(used.astype(np.intp), sigma, count, low, high)

    def element_sigma(self) -> Floats:
        """Return each element's noise: the maximum of its group, single-axis slices, and spread."""
        noise = self.scale * self.spread
        for kind in self.slices:
            if len(kind.axes) < 2:
                noise = np.maximum(noise, kind.sigma)
        bins = self.bins
        flat = noise.reshape(-1)
        in_bin = bins.bins >= 0
        flat = np.where(in_bin, np.maximum(flat, bins.sigma[bins.bins]), flat)
        return flat.reshape(self.expected.shape)


def slice_rms(values: Floats, axes: tuple[int, ...]) -> Floats:
    """Return the root mean square over axes, which stay with size 1."""
    if values.size == 0:
        return np.zeros([1 if axis in axes else size for axis, size in enumerate(values.shape)])
    mean: Floats = np.mean(values * values, axis=axes, keepdims=True)
    return np.sqrt(mean)


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values * values))) if values.size else 0.0


def _grouped(counts: npt.NDArray[Any]) -> Integers:
    """Return the group of each octave: from the largest down, merged until there are enough elements.

    Exact zeros, octave 0, are a group of their own: group 0.
    """
    groups = np.zeros(counts.size, np.intp)
    group, inside, start = 1, 0, counts.size - 1
    for octave in range(counts.size - 1, 0, -1):
        if inside and (inside >= _MERGED or start - octave >= _MOST_OCTAVES):
            group, inside = group + 1, 0
        if not inside:
            start = octave
        groups[octave] = group
        inside += int(counts[octave])
    # Numbered from the smallest magnitude up, so that neighbours have neighbouring numbers.
    groups[1:] = group + 1 - groups[1:]
    return groups


def _ranges(group_of: Integers, counts: npt.NDArray[Any], base: int) -> tuple[Floats, Floats]:
    size = int(group_of.max()) + 1
    low, high = np.zeros(size), np.zeros(size)
    for octave in range(counts.size - 1, 0, -1):
        if counts[octave]:
            group = group_of[octave]
            low[group] = np.ldexp(0.5, octave + base - 1)
            high[group] = high[group] or np.ldexp(1.0, octave + base - 1)
    return low, high
