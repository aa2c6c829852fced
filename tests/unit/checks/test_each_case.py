"""Cases that are one test."""

from __future__ import annotations

import pytest
from tests.each_case import each_case

CASES = [(1, 1), (2, 3), (4, 5), (6, 6)]


@each_case(("left", "right"), CASES)
def check_equal(left: int, right: int) -> None:
    assert left == right


def test_every_case_that_fails_is_named() -> None:
    with pytest.raises(ExceptionGroup, match="2 of 4 cases") as caught:
        check_equal()
    notes = [note for failure in caught.value.exceptions for note in failure.__notes__]
    assert notes == ["case: {'left': 2, 'right': 3}", "case: {'left': 4, 'right': 5}"]


def test_no_cases_are_a_failure() -> None:
    with pytest.raises(AssertionError):
        each_case("left", [])(lambda left: None)()
