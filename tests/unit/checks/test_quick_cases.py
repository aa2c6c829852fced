"""Which cases of a test are quick."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from tests.quick_cases import chosen_cases, mark_other_cases


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


class FakeItem:
    """A test of one file, with markers by name."""

    parent = None
    path = Path("test_file.py")

    def __init__(self, name: str, *marks: pytest.MarkDecorator) -> None:
        self.name = name
        self.marks = {mark.name: mark for mark in marks}

    def get_closest_marker(self, name: str) -> pytest.MarkDecorator | None:
        return self.marks.get(name)

    def add_marker(self, name: str) -> None:
        self.marks[name] = pytest.mark.slow


def test_so_many_tests_of_a_file_are_quick() -> None:
    few = pytest.mark.quick_tests(2, also=["e"])
    items = [FakeItem("in processes", few, pytest.mark.processes), *(FakeItem(name, few) for name in "abcde")]
    mark_other_cases(cast("list[pytest.Item]", items), is_whole_file=True)
    assert [item.name for item in items if "slow" in item.marks] == []
    mark_other_cases(cast("list[pytest.Item]", items))
    assert [item.name for item in items if "slow" in item.marks] == ["b", "d"]
