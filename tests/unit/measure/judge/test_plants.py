"""Planted faults that one bound per output let through, and honest results that must pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.each_case import each_case

from intarsia.measure.judge.numeric_check import NumericCheck
from intarsia.measure.judge.tolerance import EXACT
from intarsia.measure.judge.tolerance_check import ToleranceCheck

Array = npt.NDArray[Any]
EPS = 2.0**-23


def noisy(array: Array, seed: int, size: float = 4 * EPS) -> Array:
    """An honest engine's result: off by a few epsilons of each row's magnitude."""
    rows = np.sqrt(np.mean(array.astype(np.float64) ** 2, axis=-1, keepdims=True))
    noise = np.random.default_rng(seed).standard_normal(array.shape)
    return np.asarray(array + size * np.maximum(np.abs(array), 0.1 * rows) * noise).astype(array.dtype)


def check_of(expected: Array) -> NumericCheck:
    runs = [noisy(expected, seed) for seed in (1, 2)]
    spread = np.max([np.abs(run.astype(np.float64) - expected) for run in runs], axis=0)
    return NumericCheck(0, "y", expected, spread.astype(np.float32))


def boxes_and_scores() -> Array:
    generator = np.random.default_rng(0)
    scores = generator.uniform(0, 1, (100, 1))
    return np.concatenate([generator.uniform(0, 640, (100, 4)), scores], 1).astype(np.float32)


def probabilities() -> Array:
    logits = np.random.default_rng(0).standard_normal((1, 1000)) * 4
    powers = np.exp(logits)
    return np.asarray(powers / powers.sum()).astype(np.float32)


def channels() -> Array:
    values = np.random.default_rng(0).standard_normal((1, 16, 12, 12))
    values[0, 3] *= 1500
    return values.astype(np.float32)


def ordinary() -> Array:
    return np.random.default_rng(1).standard_normal((1, 16, 12, 12)).astype(np.float32)


def zeroed_scores(y: Array) -> Array:
    y[:, 4] = 0
    return y


def zeroed_small_probabilities(y: Array) -> Array:
    y[y < np.sort(y.reshape(-1))[-12]] = 0
    return y


def zeroed_small_values(y: Array) -> Array:
    y[np.abs(y) < 1] = 0
    return y


def small_number_for_zero(y: Array) -> Array:
    y[0, 5, 2, 3] = 5e-4
    return y


def with_zeros(y: Array) -> Array:
    return np.asarray(np.maximum(y, 0))


def scaled_channel(y: Array) -> Array:
    y[:, 7] *= np.float32(1.001)
    return y


def one_element(y: Array) -> Array:
    y.reshape(-1)[np.abs(y).argmax()] *= np.float32(1.001)
    return y


def rounded_to_half(y: Array) -> Array:
    return y.astype(np.float16).astype(np.float32)


def flushed(y: Array) -> Array:
    y[np.abs(y) < 1e-4 * np.abs(y).max()] = 0
    return y


def one_nan(y: Array) -> Array:
    y.reshape(-1)[3] = np.nan
    return y


PLANTS: list[tuple[Callable[[], Array], Callable[[Array], Array]]] = [
    (boxes_and_scores, zeroed_scores),
    (probabilities, zeroed_small_probabilities),
    (channels, zeroed_small_values),
    (lambda: with_zeros(ordinary()), small_number_for_zero),
    *(
        (make, fault)
        for make in (boxes_and_scores, probabilities, channels, ordinary)
        for fault in (one_element, rounded_to_half, one_nan)
    ),
    (channels, scaled_channel),
    (probabilities, flushed),
    (channels, flushed),
]


@each_case(("make", "fault"), PLANTS)
def test_planted_faults_are_caught(make: Callable[[], Array], fault: Callable[[Array], Array]) -> None:
    expected = make()
    report = check_of(expected).check([fault(noisy(expected, 3))])
    assert not report.passed
    assert report.excess > 1
    assert 'output "y"' in report.message


@pytest.mark.quick_cases(14)
@pytest.mark.parametrize("make", [boxes_and_scores, probabilities, channels, lambda: with_zeros(channels())])
@pytest.mark.parametrize("seed", range(3, 13))
def test_honest_results_pass(make: Callable[[], Array], seed: int) -> None:
    expected = make()
    report = check_of(expected).check([noisy(expected, seed)])
    assert report.passed, report.message


def test_a_flipped_mask_is_caught() -> None:
    mask = (np.arange(50) % 3 == 0).astype(np.uint8)
    check = ToleranceCheck(0, "mask", mask, EXACT)
    assert not check.check([1 - mask]).passed
    assert check.check([mask.copy()]).passed


@pytest.mark.parametrize(("size", "passes"), [(5e-3, True), (2e-2, False)])
def test_a_bound_is_a_fraction_of_the_norm(size: float, passes: bool) -> None:
    expected = channels()
    noise = np.random.default_rng(5).standard_normal(expected.shape) * np.abs(expected)
    off = expected + size * noise * np.linalg.norm(expected) / np.linalg.norm(noise)
    assert check_of(expected).loosened(1e-2).check([off.astype(np.float32)]).passed == passes


def test_if_zero_is_all_that_judges_give_only_zero_passes() -> None:
    zeros = np.zeros((4, 10), np.float32)
    check = NumericCheck(0, "y", zeros, zeros)
    assert check.check([zeros.copy()]).passed
    assert not check.check([zeros + np.float32(1e-30)]).passed
