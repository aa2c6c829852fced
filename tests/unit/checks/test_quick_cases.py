"""Which cases of a test are quick."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.quick_cases import chosen_cases


@pytest.mark.parametrize(("total", "count"), [(1, 1), (5, 2), (32, 8), (150, 40), (4, 9)])
def test_so_many_are_chosen_and_the_first_is_among_them(total: int, count: int) -> None:
    cases = chosen_cases(total, count)
    assert len(set(cases)) == min(total, count)
    assert cases[0] == 0
    assert cases[-1] < total


@pytest.mark.parametrize("inner", [2, 3, 4, 5, 8])
def test_every_value_of_the_innermost_parameter_is_among_them(inner: int) -> None:
    assert {case % inner for case in chosen_cases(20 * inner, 4 * inner)} == set(range(inner))


def test_they_are_spread_over_all() -> None:
    cases = chosen_cases(150, 40)
    assert max(after - before for before, after in pairwise(cases)) <= 6


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("case", range(5))
def test_the_others_are_slow(case: int, request: pytest.FixtureRequest) -> None:
    collected = [item for item in request.session.items if item.name.startswith("test_the_others_are_slow")]
    assert (request.node.get_closest_marker("slow") is None) == (case in (0, 2) or len(collected) == 1)
