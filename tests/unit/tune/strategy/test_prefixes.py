"""Prefixes of decisions that a prediction has put in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import pytest

from intarsia.support.errors import UsageError
from intarsia.tune.strategy import Point, Prefixes, SearchLimits, Trials


def trials(cost: Callable[[Point], float], count: int = 8, limit: float = inf) -> Trials:
    """`count` decisions between "0", "1" and "2", and one without an alternative among them."""
    choices: list[Sequence[str]] = [("0", "1", "2")] * count
    choices.insert(1, ("only",))
    return Trials(choices, lambda points: [cost(point) for point in points], SearchLimits(trials=limit))


def test_all_changes_then_half_of_them_and_so_on() -> None:
    asked = trials(lambda point: 10.0 - point.count("1"))
    assert Prefixes().search(asked).count("1") == 8
    assert [point.count("1") for point in asked.costs] == [0, 8, 4, 2, 1]
    assert all("2" not in point for point in asked.costs)
    assert all(point[1] == "only" for point in asked.costs)


def test_the_best_prefix_is_taken() -> None:
    best = Prefixes().search(trials(lambda point: 10.0 + abs(point.count("1") - 2)))
    assert best == ("1", "only", "1", *("0",) * 6)


def test_a_small_gain_is_none() -> None:
    asked = trials(lambda point: 10.0 - 0.02 * point.count("1"))
    assert Prefixes().search(asked) == asked.start
    assert Prefixes(least_gain=0.0).search(asked).count("1") == 8


def test_what_fails_is_not_taken_and_a_failing_start_is_left() -> None:
    asked = trials(lambda point: inf if point.count("1") > 4 else 10.0 - point.count("1"))
    assert Prefixes().search(asked).count("1") == 4
    asked = trials(lambda point: inf if point.count("1") < 2 else 1.0)
    assert Prefixes().search(asked).count("1") == 8


def test_it_keeps_to_the_limits() -> None:
    asked = trials(lambda point: 10.0 - point.count("1"), limit=2)
    assert Prefixes().search(asked).count("1") == 8
    assert len(asked.costs) == 2


def test_without_alternatives_the_start_is_the_result() -> None:
    asked = Trials([("0",), ("0",)], lambda points: [1.0 for _ in points])
    assert Prefixes().search(asked) == ("0", "0")
    assert len(asked.costs) == 1


def test_a_gain_is_a_share() -> None:
    with pytest.raises(UsageError, match=r"the least gain is 1"):
        Prefixes(least_gain=1.0)


@pytest.mark.parametrize("bad", range(8))
def test_one_choice_that_fails_costs_itself_only(bad: int) -> None:
    """The others are taken, however far in front the bad one stands."""
    at = bad + (bad > 0)
    asked = trials(lambda point: inf if point[at] == "1" else 10.0 - point.count("1"))
    best = Prefixes().search(asked)
    assert best.count("1") == 7
    assert best[at] == "0"
    assert len(asked.costs) <= 5 + 10 + 3, "prefixes, at most 10 trials to find it, and prefixes again"


def test_two_choices_that_fail_are_both_left_out() -> None:
    asked = trials(lambda point: inf if "1" in {point[0], point[5]} else 10.0 - point.count("1"))
    assert Prefixes().search(asked).count("1") == 6


def test_nothing_is_looked_for_beyond_the_limits() -> None:
    asked = trials(lambda point: inf if point[0] == "1" else 10.0 - point.count("1"), limit=5)
    assert Prefixes().search(asked) == asked.start
    assert len(asked.costs) == 5
