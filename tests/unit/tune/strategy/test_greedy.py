"""Greedy leaves the first choice only for a clear gain."""

from __future__ import annotations

from math import inf

import pytest

from intarsia.support.errors import UsageError
from intarsia.tune.strategy import Greedy, Point, SearchLimits, Trials

CHOICES = (("0", "1", "2"), ("0", "1"), ("0", "1", "2", "3"))


def trials(costs: dict[Point, float], **limits: float) -> Trials:
    return Trials(
        CHOICES,
        lambda points: [costs.get(point, 1.0) for point in points],
        SearchLimits(**limits),  # trials or seconds
    )


def test_it_tries_one_point_for_each_choice_and_adds_up_what_pays() -> None:
    tried = trials({("2", "0", "0"): 0.8, ("2", "0", "3"): 0.7})
    assert Greedy().search(tried) == ("2", "0", "3")
    assert len(tried.costs) == 1 + 2 + 1 + 3


@pytest.mark.parametrize(("gain", "found"), [(0.0, "1"), (0.02, "0")])
def test_a_small_gain_is_noise(gain: float, found: str) -> None:
    tried = trials({("0", "1", "0"): 0.99, ("0", "1", "1"): 0.99})
    assert Greedy(gain).search(tried)[1] == found


def test_equal_costs_leave_the_first_choice() -> None:
    assert Greedy(0).search(trials({})) == ("0", "0", "0")


def test_a_start_that_fails_is_left_for_what_works() -> None:
    tried = trials({("0", "0", "0"): inf, ("1", "0", "0"): inf, ("2", "0", "0"): 5.0})
    assert Greedy(0.5).search(tried) == ("2", "1", "0")


def test_limits_end_it() -> None:
    tried = trials({("1", "0", "0"): 0.5}, trials=2)
    assert Greedy().search(tried) == ("1", "0", "0")
    assert len(tried.costs) == 2


@pytest.mark.parametrize("gain", [-0.1, 1.0])
def test_a_gain_that_is_no_part_is_refused(gain: float) -> None:
    with pytest.raises(UsageError, match="the least gain"):
        Greedy(gain)
