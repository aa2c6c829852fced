"""Predicted moments against sampled ones."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from intarsia.frontend.zoo.moments import (
    SWISH,
    Moments,
    Signal,
    of_normal,
    output_moments,
    rectified,
    swish,
)


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (2.0, 0.5), (-1.0, 1.5), (3.0, 2.0)])
def test_rectified_agrees_with_samples(mean: float, deviation: float) -> None:
    samples = np.maximum(np.random.default_rng(0).normal(mean, deviation, 400_000), 0)
    moments = rectified(Moments(mean, mean**2 + deviation**2))
    assert moments.mean == pytest.approx(samples.mean(), rel=0.02)
    assert moments.square == pytest.approx(np.square(samples).mean(), rel=0.02)


@pytest.mark.parametrize("value", [-2.0, 0.0, 2.0])
def test_rectified_constant(value: float) -> None:
    assert rectified(Moments(value, value**2)) == Moments(max(value, 0), max(value, 0) ** 2)


@pytest.mark.parametrize(
    ("operator", "function"), [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)]
)
def test_arithmetic_agrees_with_samples(operator: str, function: np.ufunc) -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(1.0, 0.5, 400_000), generator.normal(-2.0, 1.0, 400_000)
    samples = function(x, y)
    node = helper.make_node(operator, ["x", "y"], ["z"])
    inputs = (Signal((400_000,), Moments(1.0, 1.25)), Signal((400_000,), Moments(-2.0, 5.0)))

    moments = output_moments(node, inputs, (400_000,))

    assert moments.mean == pytest.approx(samples.mean(), rel=0.02)
    assert moments.square == pytest.approx(np.square(samples).mean(), rel=0.02)


def test_batch_normalization_agrees_with_samples() -> None:
    generator = np.random.default_rng(0)
    size = 400_000
    data, scale, shift, mean, variance = (
        generator.normal(centre, spread, size)
        for centre, spread in ((0.5, 1.0), (1.0, 0.05), (0.1, 0.05), (0.2, 0.05), (2.0, 0.1))
    )
    samples = (data - mean) / np.sqrt(variance) * scale + shift
    node = helper.make_node("BatchNormalization", list("xsbmv"), ["y"])
    parts = (data, scale, shift, mean, variance)
    inputs = tuple(Signal((size,), Moments(float(p.mean()), float(np.square(p).mean()))) for p in parts)

    moments = output_moments(node, inputs, (size,))

    assert moments.mean == pytest.approx(samples.mean(), rel=0.02)
    assert moments.square == pytest.approx(np.square(samples).mean(), rel=0.02)


def test_concatenation_weighs_its_parts_by_size() -> None:
    node = helper.make_node("Concat", ["x", "y"], ["z"], axis=0)
    inputs = (Signal((1,), Moments(0.0, 1.0)), Signal((3,), Moments(4.0, 17.0)))
    assert output_moments(node, inputs, (4,)) == Moments(3.0, 13.0)


def test_residual_sums_of_rectified_values_grow_linearly() -> None:
    moments = Moments(0.0, 1.0)
    node = helper.make_node("Add", ["x", "y"], ["z"])
    for _ in range(16):
        total = output_moments(node, (Signal((1,), moments), Signal((1,), Moments(0.0, 1.0))), (1,))
        moments = rectified(total)
    assert 8 < moments.square < 24


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (1.0, 0.3), (-2.0, 1.5)])
def test_functions_of_a_normal_agree_with_samples(mean: float, deviation: float) -> None:
    x = np.random.default_rng(0).normal(mean, deviation, 400_000)
    node = helper.make_node("Sigmoid", ["x"], ["y"])
    given = Moments(mean, mean**2 + deviation**2)
    gates = 1 / (1 + np.exp(-x))

    moments = output_moments(node, (Signal(x.shape, given),), x.shape)
    assert moments.mean == pytest.approx(gates.mean(), rel=0.02)
    assert moments.square == pytest.approx(np.square(gates).mean(), rel=0.02)
    assert of_normal(np.cos, given).mean == pytest.approx(np.cos(x).mean(), abs=0.005)

    found = swish(given)
    assert found.mean == pytest.approx((x * gates).mean(), rel=0.02, abs=0.005)
    assert found.square == pytest.approx(np.square(x * gates).mean() * SWISH, rel=0.02)


def test_averages_of_swishes_vary_as_the_channels_do() -> None:
    generator = np.random.default_rng(0)
    channels = generator.normal(0.2, (0.3 * 0.5) ** 0.5, (4000, 1))
    x = channels + generator.normal(0.0, (0.7 * 0.5) ** 0.5, (4000, 400))
    averages = (x / (1 + np.exp(-x))).mean(axis=1)
    found = swish(Moments(0.2, 0.04 + 0.5))
    pool = helper.make_node("GlobalAveragePool", ["x"], ["y"])

    assert found.pooled is not None
    assert found.pooled == pytest.approx(np.square(averages).mean(), rel=0.05)
    pooled = output_moments(pool, (Signal((1, 8, 4, 4), found),), (1, 8, 1, 1))
    assert pooled == Moments(found.mean, found.pooled)


def test_averages_of_other_values_are_taken_to_be_like_them() -> None:
    pool = helper.make_node("GlobalAveragePool", ["x"], ["y"])
    given = Signal((1, 8, 4, 4), Moments(0.4, 0.5))
    assert output_moments(pool, (given,), (1, 8, 1, 1)) == given.moments
