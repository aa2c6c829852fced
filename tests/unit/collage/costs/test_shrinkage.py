"""Shrinking costs by their uncertainty, with planted noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from intarsia.collage.costs.shrinkage import MeasuredSeconds, shrunk


def exact(seconds: float) -> MeasuredSeconds:
    return MeasuredSeconds(seconds, seconds, seconds)


def noisy(seconds: float, error: float) -> MeasuredSeconds:
    """With the interval that belongs to a standard error of the logarithm."""
    half = 1.96 * error
    return MeasuredSeconds(seconds, seconds * math.exp(-half), seconds * math.exp(half))


def test_what_is_certain_stays() -> None:
    (found,) = shrunk([{"a": exact(1.0), "b": exact(4.0)}])
    assert found == pytest.approx({"a": 1.0, "b": 4.0})


def test_one_cost_has_nothing_to_be_shrunk_to() -> None:
    assert shrunk([{"a": noisy(2.0, 0.5)}]) == [{"a": 2.0}]
    assert shrunk([]) == []
    assert shrunk([{}]) == [{}]


def test_noise_is_pulled_to_the_middle_and_never_beyond() -> None:
    """What differs by less than its noise counts as nearly equal; the order is kept."""
    (found,) = shrunk([{"a": noisy(1.0, 0.3), "b": noisy(1.1, 0.3), "c": noisy(1.2, 0.3)}])
    assert 1.0 < found["a"] < found["b"] < found["c"] < 1.2
    middle = (1.0 * 1.1 * 1.2) ** (1 / 3)
    assert found["a"] > 0.95 * middle
    assert found["c"] < 1.05 * middle


def test_the_less_certain_one_is_pulled_further() -> None:
    groups = [{"a": noisy(1.0, 0.02), "b": noisy(2.0, 0.4)}, {"a": noisy(1.0, 0.02), "b": noisy(1.5, 0.02)}]
    first, _ = shrunk(groups)
    moved = {name: abs(math.log(first[name] / groups[0][name].seconds)) for name in first}
    assert moved["b"] > 10 * moved["a"]


def test_without_interval_it_is_as_uncertain_as_the_worst() -> None:
    open_ended = MeasuredSeconds(1.0, -math.inf, math.inf)
    assert math.isinf(open_ended.error)
    groups = [{"a": open_ended, "b": noisy(1.3, 0.2)}, {"a": noisy(1.0, 0.2), "b": noisy(1.3, 0.2)}]
    first, second = shrunk(groups)
    assert first == pytest.approx(second)
    assert shrunk([{"a": open_ended, "b": open_ended}]) == [{"a": 1.0, "b": 1.0}]


def test_the_error_is_read_off_the_interval() -> None:
    assert noisy(3.0, 0.25).error == pytest.approx(0.25, rel=1e-3)
    assert exact(3.0).error == 0


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("error", [0.05, 0.15, 0.3])
@pytest.mark.parametrize("differing", [0.0, 0.1])
def test_best_of_many_is_predicted_better(error: float, differing: float) -> None:
    """The winner's curse: of three noisy costs for each of 60 groups the least is chosen, and all are added.

    The sum of the chosen ones' costs looks cheaper than it is; shrunk, it is nearer the truth. And the choice
    is no worse.
    """
    rng = np.random.default_rng(round(1000 * error))
    raw_miss, shrunk_miss = [], []
    for _ in range(30):
        truth = np.exp(rng.normal(0, 0.8, (60, 1)) + differing * rng.normal(size=(60, 3)))
        seen = truth * np.exp(error * rng.normal(size=truth.shape))
        groups = [
            {toolchain: noisy(float(cost), error) for toolchain, cost in enumerate(row)} for row in seen
        ]
        better = np.array([[row[toolchain] for toolchain in range(3)] for row in shrunk(groups)])
        chosen = better.argmin(axis=1)
        assert (chosen == seen.argmin(axis=1)).all()
        rows = np.arange(60)
        actual = truth[rows, chosen].sum()
        raw_miss.append(abs(math.log(seen[rows, chosen].sum() / actual)))
        shrunk_miss.append(abs(math.log(better[rows, chosen].sum() / actual)))
    assert np.mean(shrunk_miss) < 0.6 * np.mean(raw_miss)
