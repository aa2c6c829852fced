"""Histograms of values that are sampled while a program runs once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.tune.quantise.calibrators import BINS, Array, Histogram, calibrated_range
from intarsia.tune.quantise.samples import SAMPLES, Samples


def counted(arrays: list[Array]) -> tuple[Array, tuple[float, float]]:
    """Return the counts of all arrays by samples, and their limits."""
    samples = Samples.of_runs(len(arrays))
    for array in arrays:
        samples.add(array, (float(array.min()), float(array.max())))
    limits = float(min(array.min() for array in arrays)), float(max(array.max() for array in arrays))
    return samples.counts(limits), limits


@given(seed=st.integers(0, 9999), sizes=st.lists(st.integers(1, 300), min_size=1, max_size=5))
def test_few_elements_are_counted_one_by_one(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(size).astype(np.float32) for size in sizes]
    counts, limits = counted(arrays)
    values = np.concatenate(arrays)
    expected = np.histogram(values, BINS, limits)[0] if limits[1] > limits[0] else [1]
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("method", ["percentile", "entropy", "mse"])
def test_ranges_of_many_elements_are_those_of_all(method: str) -> None:
    """Values of 8 runs, of which one element in 16 is kept."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, SAMPLES // 8, 8)).astype(np.float32) for _ in range(8)]
    counts, limits = counted(arrays)
    exact = np.histogram(np.stack(arrays), BINS, limits)[0]
    assert counts.sum() == pytest.approx(exact.sum(), rel=1e-4)
    low, high = calibrated_range(Histogram(*limits, counts), method, 99.9)
    assert (low, high) == pytest.approx(calibrated_range(Histogram(*limits, exact), method, 99.9), rel=0.1)


def test_one_element_far_from_all_others_counts_once() -> None:
    """Clipping it costs more than coarser steps of all others."""
    array = np.full(4 * SAMPLES, 1.0, np.float32)
    array[::2] = -1.0
    array[12345] = 3000.0
    counts, limits = counted([array])
    assert counts[-1] == 1
    assert calibrated_range(Histogram(*limits, counts), "mse", 100)[1] > 2000


def test_values_that_are_all_equal_or_absent() -> None:
    assert Samples(4).counts((0.0, 0.0)).tolist() == [1]
    assert counted([np.full(5, 2.0, np.float32)])[0].tolist() == [1]
