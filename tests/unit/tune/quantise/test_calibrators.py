"""Calibrators against brute force over the values themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.support.errors import UsageError
from intarsia.tune.quantise.calibrators import (
    BINS,
    Array,
    Histogram,
    calibrated_range,
    kl_divergence,
    rounded,
    scale_and_zero_point,
    squared_error,
    weight_scale,
)

FEW = settings(max_examples=examples(50), deadline=None)


@st.composite
def values(draw: st.DrawFn) -> Array:
    """Normal, exponential or heavy-tailed values, with an offset or without."""
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    kind = draw(st.sampled_from(["normal", "exponential", "student", "outlier"]))
    drawn = {
        "normal": rng.standard_normal(4000),
        "exponential": rng.exponential(1, 4000),
        "student": rng.standard_t(3, 4000),
        "outlier": np.append(rng.standard_normal(4000), 60.0),
    }[kind]
    return (drawn + draw(st.sampled_from([0.0, 0.0, 1.5, -3.0]))).astype(np.float32)


def histogram_of(array: Array) -> Histogram:
    low, high = float(array.min()), float(array.max())
    return Histogram(low, high, np.histogram(array, BINS, (low, high))[0])


@FEW
@given(array=values(), percentile=st.sampled_from([99.0, 99.9, 100.0]))
def test_percentiles_are_those_of_the_values(array: Array, percentile: float) -> None:
    low, high = calibrated_range(histogram_of(array), "percentile", percentile)
    tail = (100 - percentile) / 2
    width = float(array.max() - array.min()) / BINS
    ordered = np.sort(array)
    for limit, share in ((low, tail), (high, 100 - tail)):
        # Between two values far apart, any number is a percentile.
        position = share / 100 * array.size
        nearest = ordered[[max(0, int(position) - 1), min(array.size - 1, int(np.ceil(position)))]]
        assert nearest[0] - width <= limit <= nearest[1] + width


@FEW
@given(array=values())
def test_the_mean_squared_error_is_within_a_bin_of_the_least(array: Array) -> None:
    histogram = histogram_of(array)
    limits = calibrated_range(histogram, "mse", 100)
    low, high = float(array.min()), float(array.max())

    def error(tried: tuple[float, float]) -> float:
        return float(np.mean((rounded(array, tried) - array) ** 2))

    least = min(error((low * share, high * share)) for share in np.linspace(1, 0.1, 64))
    width = (high - low) / BINS
    assert error(limits) <= 1.05 * least + width**2
    assert squared_error(histogram, limits) == pytest.approx(error(limits), rel=0.1, abs=width**2)


@FEW
@given(array=values())
def test_entropy_selects_the_least_divergence(array: Array) -> None:
    histogram = histogram_of(array)
    limits = calibrated_range(histogram, "entropy", 100)
    shares = np.linspace(1, 0.1, 64)
    divergences = [
        kl_divergence(histogram, (float(array.min()) * share, float(array.max()) * share)) for share in shares
    ]
    assert kl_divergence(histogram, limits) == min(divergences)


@pytest.mark.parametrize("limits", [(-1.0, 1.0), (-0.3, 0.5)])
def test_the_divergence_is_that_of_its_definition(limits: tuple[float, float]) -> None:
    """Sum over bins of p log(p / q), bin by bin, of a small histogram."""
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, 1024)
    histogram = Histogram(-1.0, 1.0, counts)
    scale, zero = scale_and_zero_point(*limits)
    inside = [n for n, centre in enumerate(histogram.centres) if limits[0] <= centre <= limits[1]]
    observed = {n: float(counts[n]) for n in inside}
    observed[inside[0]] += float(counts[: inside[0]].sum())
    observed[inside[-1]] += float(counts[inside[-1] + 1 :].sum())
    steps = {n: int(np.clip(np.rint(histogram.centres[n] / scale) + zero, 0, 255)) for n in inside}
    quantised = {}
    for n in inside:
        alike = [other for other in inside if steps[other] == steps[n] and observed[other] > 0]
        total = sum(counts[other] for other in inside if steps[other] == steps[n])
        quantised[n] = total / len(alike) if observed[n] > 0 else 0.0
    all_p, all_q = sum(observed.values()), sum(quantised.values())
    expected = sum(
        p / all_p * np.log(p / all_p / max(quantised[n] / all_q, 1e-12)) for n, p in observed.items() if p
    )
    assert kl_divergence(histogram, limits) == pytest.approx(expected)


@FEW
@given(low=st.floats(-50, 50, width=32), high=st.floats(-50, 50, width=32))
def test_zero_is_exact_and_the_range_is_covered(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    scale, zero = scale_and_zero_point(low, high)
    assert 0 <= zero <= 255
    ends = np.array([low, 0.0, high])
    np.testing.assert_allclose(rounded(ends, (low, high)), ends, atol=0.51 * scale + 1e-30)
    assert rounded(np.zeros(1), (low, high))[0] == 0


def test_a_channel_of_zeros_has_a_scale() -> None:
    weight = np.array([[0.0, 0.0], [2.54, -1.0]], np.float32)
    assert weight_scale(weight, 0, "minmax").tolist() == pytest.approx([1.0, 0.02])


@FEW
@given(seed=st.integers(0, 999), axis=st.sampled_from([0, 1]))
def test_scales_of_weights_by_squared_error_are_never_worse(seed: int, axis: int) -> None:
    weight = np.random.default_rng(seed).standard_t(3, (6, 6)).astype(np.float32)
    errors = []
    for method in ("minmax", "mse"):
        scale = np.expand_dims(weight_scale(weight, axis, method).astype(np.float64), 1 - axis)
        errors.append(
            ((np.clip(np.rint(weight / scale), -127, 127) * scale - weight) ** 2).sum(axis=1 - axis)
        )
    assert (errors[1] <= errors[0] * (1 + 1e-5)).all()


def test_unknown_methods_and_percentiles() -> None:
    histogram = Histogram(0.0, 1.0, np.ones(4))
    with pytest.raises(UsageError, match=r"^unknown calibration method 'max'"):
        calibrated_range(histogram, "max", 99.0)
    with pytest.raises(UsageError, match=r"^the percentile is 0.5, expected more than 50 and at most 100"):
        calibrated_range(histogram, "percentile", 0.5)
