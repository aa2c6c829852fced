"""Costs: what they add up to, and that none is compared that cannot be."""

from __future__ import annotations

import math
import operator

import pytest

from intarsia.collage.candidates.cost import Cost

ONE, TWO = Cost.value(1.0), Cost.value(2.0)
ZERO, INVALID, UNKNOWN = Cost.ZERO, Cost.INVALID, Cost.UNKNOWN


def test_values_compare() -> None:
    assert ZERO < ONE < TWO < INVALID
    assert TWO > ONE
    assert Cost.value(1) >= ONE
    assert Cost.value(1) <= ONE
    assert not INVALID < INVALID
    assert INVALID <= INVALID
    assert min(TWO, INVALID, ONE) == ONE


@pytest.mark.parametrize("other", [ZERO, INVALID, UNKNOWN])
@pytest.mark.parametrize("compare", [operator.lt, operator.gt, operator.le, operator.ge])
def test_what_is_unknown_is_not_compared(compare: object, other: Cost) -> None:
    assert callable(compare)
    assert not UNKNOWN.is_comparable(other)
    assert not other.is_comparable(UNKNOWN)
    with pytest.raises(ValueError, match="do not compare; measure, or use sort_key"):
        compare(UNKNOWN, other)
    with pytest.raises(ValueError, match="do not compare"):
        compare(other, UNKNOWN)


def test_equality_is_of_what_they_say() -> None:
    assert Cost.value(1.0) == ONE
    assert Cost.UNKNOWN == UNKNOWN
    assert len({ZERO, INVALID, UNKNOWN, ONE, Cost.value(0)}) == 4


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        (ONE, TWO, Cost.value(3)),
        (ONE, ZERO, ONE),
        (ONE, UNKNOWN, UNKNOWN),
        (ONE, INVALID, INVALID),
        (UNKNOWN, INVALID, INVALID),
        (UNKNOWN, UNKNOWN, UNKNOWN),
    ],
)
def test_sums(left: Cost, right: Cost, both: Cost) -> None:
    assert left + right == right + left == both
    assert Cost.total([left, right]) == both
    assert Cost.total([]) == ZERO


def test_differences() -> None:
    assert TWO - ONE == ONE
    assert UNKNOWN - ONE == ONE - UNKNOWN == UNKNOWN
    assert INVALID - ONE == INVALID
    with pytest.raises(ValueError, match="1s cannot be taken from 0us: the part is dearer than the whole"):
        ZERO - ONE
    with pytest.raises(ValueError, match="invalid cannot be taken from 1s"):
        ONE - INVALID


def test_an_order_for_lists() -> None:
    mixed = [INVALID, TWO, UNKNOWN, ZERO, ONE]
    assert sorted(mixed, key=lambda cost: cost.sort_key) == [ZERO, ONE, TWO, UNKNOWN, INVALID]


@pytest.mark.parametrize("seconds", [-1.0, math.inf, math.nan])
def test_refuses_what_is_no_duration(seconds: float) -> None:
    with pytest.raises(ValueError, match="expected a finite number, 0 or more"):
        Cost.value(seconds)


def test_refuses_a_value_of_nothing() -> None:
    with pytest.raises(ValueError, match=r"a cost that is invalid has no seconds, found 1\.0"):
        Cost(INVALID.kind, 1.0)


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (ZERO, "0us"),
        (Cost.value(12.34e-6), "12.34us"),
        (Cost.value(4.567e-3), "4.567ms"),
        (Cost.value(1.25), "1.25s"),
        (INVALID, "invalid"),
        (UNKNOWN, "unknown"),
    ],
)
def test_prints_in_the_unit_that_fits(cost: Cost, text: str) -> None:
    assert str(cost) == text


def test_says_what_is_known() -> None:
    assert [(one.is_value, one.is_invalid, one.is_unknown) for one in (ONE, INVALID, UNKNOWN)] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
