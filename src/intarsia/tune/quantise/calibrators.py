"""Ranges of values to quantise, from what was observed of them.

minmax      the least and the largest value
percentile  without a share of the values at both ends
entropy     the range whose quantised distribution is nearest to the observed one, by KL divergence
mse         the range with the least mean squared error

The last two try the observed range and `GRID` smaller ones, each a fraction of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.support.errors import UsageError

Array = npt.NDArray[Any]
Range: TypeAlias = tuple[float, float]

METHODS: Final = ("minmax", "percentile", "entropy", "mse")
BINS: Final = 2048
"""Bins of a histogram: 8 for each of 256 steps, as TensorRT's calibrator has."""

GRID: Final = 64
_LEAST_FRACTION: Final = 0.1
"""Smallest fraction of the observed range that is tried."""

_STEPS: Final = 255

_CACHED: Final = 1 << 16
"""Elements of weights that many scales are tried on at a time, so that they stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """How often a value was observed in each of some bins of equal width.

    Attributes:
        low: Left end of the first bin.
        high: Right end of the last bin.
        counts: Number of values in each bin.
    """

    low: float
    high: float
    counts: Array

    @property
    def edges(self) -> Array:
        """Ends of the bins, one more than there are bins."""
        return np.linspace(self.low, self.high, self.counts.size + 1)

    @property
    def centres(self) -> Array:
        """The middle of each bin."""
        edges = self.edges
        return 0.5 * (edges[:-1] + edges[1:])


def check_method(method: str, percentile: float) -> None:
    """Check the name of a calibrator and its option.

    Raises:
        UsageError: There is no such calibrator, or the percentile is not above 50 and at most 100.
    """
    if method not in METHODS:
        raise UsageError(f"unknown calibration method {method!r}", help=f"there are: {', '.join(METHODS)}")
    if not 50 < percentile <= 100:
        raise UsageError(f"the percentile is {percentile}, expected more than 50 and at most 100")


def calibrated_range(histogram: Histogram, method: str, percentile: float) -> Range:
    """Return the range to quantise, by a method with the histogram of a value.

    Raises:
        UsageError: There is no such calibrator.
    """
    check_method(method, percentile)
    if method == "minmax" or histogram.high <= histogram.low:
        return histogram.low, histogram.high
    if method == "percentile":
        return percentile_range(histogram, percentile)
    error = kl_divergence if method == "entropy" else squared_error
    return min(_smaller_ranges(histogram), key=lambda tried: error(histogram, tried))


def percentile_range(histogram: Histogram, percentile: float) -> Range:
    """Return the range that a percentage of the values lies in, the rest half below and half above it."""
    shares = np.concatenate([[0.0], np.cumsum(histogram.counts) / histogram.counts.sum()])
    tail = (1 - percentile / 100) / 2
    low, high = np.interp([tail, 1 - tail], shares, histogram.edges)
    return float(low), float(high)


def _smaller_ranges(histogram: Histogram) -> list[Range]:
    """Return the observed range first, so that it wins ties."""
    fractions = np.linspace(1.0, _LEAST_FRACTION, GRID)
    return [(float(histogram.low * share), float(histogram.high * share)) for share in fractions]


def scale_and_zero_point(low: float, high: float) -> tuple[float, int]:
    """Return the scale and zero point of uint8 for a range, which is widened to contain 0.

    0 is represented exactly, since padding is 0.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32((high - low) / _STEPS))
    if not scale > np.finfo(np.float32).tiny:
        return 1.0, 0
    return scale, int(np.clip(np.rint(-low / scale), 0, _STEPS))


def rounded(values: Array, limits: Range) -> Array:
    """Return values rounded to the steps of uint8 for a range."""
    scale, zero = scale_and_zero_point(*limits)
    return np.asarray((np.clip(np.rint(values / scale) + zero, 0, _STEPS) - zero) * scale)


def squared_error(histogram: Histogram, limits: Range) -> float:
    """Return the mean squared error of rounding to a range, with values in the middle of their bins."""
    difference = rounded(histogram.centres, limits) - histogram.centres
    return float(histogram.counts @ (difference * difference) / histogram.counts.sum())


def kl_divergence(histogram: Histogram, limits: Range) -> float:
    """Return how much information the quantised distribution loses of the observed one.

    The observed one has the values beyond the range at its ends. The quantised one spreads the values of each
    step evenly over the bins of the step that are not empty.

    Source: S. Migacz, "8-bit Inference with TensorRT", 2017.
    """
    scale, zero = scale_and_zero_point(*limits)
    steps = np.clip(np.rint(histogram.centres / scale) + zero, 0, _STEPS).astype(np.int64)
    inside = (histogram.centres >= limits[0]) & (histogram.centres <= limits[1])
    if not inside.any():
        return float("inf")
    first, last = np.flatnonzero(inside)[[0, -1]]
    kept = histogram.counts[first : last + 1].astype(np.float64)
    observed = kept.copy()
    observed[0] += histogram.counts[:first].sum()
    observed[-1] += histogram.counts[last + 1 :].sum()
    numbers = steps[first : last + 1]
    totals = np.bincount(numbers, kept, _STEPS + 1)
    filled = np.bincount(numbers, observed > 0, _STEPS + 1)
    quantised = np.where(observed > 0, (totals / np.maximum(filled, 1))[numbers], 0.0)
    if not quantised.sum():
        return float("inf")
    p, q = observed / observed.sum(), quantised / quantised.sum()
    used = p > 0
    return float(np.sum(p[used] * np.log(p[used] / np.maximum(q[used], 1e-12))))


def weight_scale(weight: Array, axis: int, method: str) -> Array:
    """Return a scale of int8 for each output channel: by the largest magnitude, or the least squared error.

    Args:
        weight: The weights.
        axis: Axis of the output channels.
        method: Calibrator; "mse" tries smaller ranges.
    """
    rows = np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
    largest = np.abs(rows).max(axis=1).astype(np.float64)
    scales = np.where(largest > 0, largest / 127, 1.0)
    if method == "mse":
        length = max(1, _CACHED // max(1, rows.shape[1]))
        for start in range(0, len(rows), length):
            part = slice(start, start + length)
            scales[part] = _scales_of_least_error(rows[part], scales[part])
    return scales.astype(np.float32)


def _scales_of_least_error(rows: Array, largest: Array) -> Array:
    """Return the scale of each row with the least squared error, among the largest one and smaller ones."""
    exact = np.ascontiguousarray(rows, np.float32)
    steps, best, least = np.empty_like(exact), largest, np.full(largest.shape, np.inf)
    for share in np.linspace(1.0, 0.5, GRID // 2):
        scales = largest * share
        column = scales.astype(np.float32)[:, None]
        np.multiply(exact, 1 / column, out=steps)
        np.rint(steps, out=steps)
        np.minimum(steps, 127, out=steps)
        np.maximum(steps, -127, out=steps)
        steps *= column
        steps -= exact
        error = np.einsum("ij,ij->i", steps, steps).astype(np.float64)
        best, least = np.where(error < least, scales, best), np.minimum(error, least)
    return best
