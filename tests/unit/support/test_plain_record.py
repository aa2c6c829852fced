"""Dataclasses as plain data and back; damage is told by its place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

import pytest

from intarsia.support.number_ranges import parse_ranges, ranges_text
from intarsia.support.plain_record import from_plain, to_plain


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    colour: Colour
    weight: float | None


@dataclass(frozen=True)
class Outer:
    name: str
    count: int
    sure: bool
    inner: Inner | None
    many: tuple[Inner, ...]
    by_name: dict[str, int]


FULL = Outer("a", 3, True, Inner(Colour.RED, 0.5), (Inner(Colour.BLUE, None),), {"x": 1})
BARE = Outer("", 0, False, None, (), {})


@pytest.mark.parametrize("record", [FULL, BARE])
def test_there_and_back_through_json(record: Outer) -> None:
    assert from_plain(Outer, json.loads(json.dumps(to_plain(record))), "it") == record


def test_whole_numbers_are_numbers_and_what_is_unknown_is_ignored() -> None:
    found = from_plain(Inner, {"colour": "red", "weight": 2, "newer": []}, "it")
    assert found == Inner(Colour.RED, 2.0)
    assert isinstance(found.weight, float)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 1}, "it.name is 1, expected a text"),
        ({"count": True}, "it.count is True, expected a whole number"),
        ({"count": 1.5}, "it.count is 1.5, expected a whole number"),
        ({"sure": 1}, "it.sure is 1, expected true or false"),
        ({"inner": []}, "it.inner is [], expected an object"),
        ({"inner": {"colour": "red"}}, "it.inner has no 'weight'"),
        (
            {"many": [{"colour": "green", "weight": 1}]},
            "it.many[0].colour is 'green', expected one of ['red', 'blue']",
        ),
        (
            {"many": [{"colour": "red", "weight": "x" * 60}]},
            f"it.many[0].weight is '{'x' * 39}..., expected a number",
        ),
        ({"many": {}}, "it.many is {}, expected a list"),
        ({"by_name": {"x": "y"}}, "it.by_name.x is 'y', expected a whole number"),
        ({"by_name": 3}, "it.by_name is 3, expected an object"),
    ],
)
def test_damage(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared as a whole
        from_plain(Outer, {**to_plain(FULL), **change}, "it")
    assert str(caught.value) == message


def test_something_else_than_an_object() -> None:
    with pytest.raises(ValueError, match=r"it is 3, expected an object"):
        from_plain(Outer, 3, "it")


@pytest.mark.parametrize(
    ("numbers", "text"), [((3,), "3"), ((1, 2), "1..2"), ((6, 3, 5), "3,5..6"), (range(1, 70), "1..69")]
)
def test_ranges(numbers: tuple[int, ...], text: str) -> None:
    assert ranges_text(numbers) == text
    assert parse_ranges(text) == tuple(sorted(numbers))


@pytest.mark.parametrize("text", ["", "a", "1..", "1,,2", "-1"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(ValueError, match="is no range of nodes"):
        parse_ranges(text)


@dataclass(frozen=True)
class Grown:
    name: str
    added: tuple[int, ...] = ()


def test_records_of_versions_before_a_field_have_its_default() -> None:
    assert from_plain(Grown, {"name": "a"}, "it") == Grown("a")
    with pytest.raises(ValueError, match="it has no 'name'"):
        from_plain(Grown, {"added": [1]}, "it")
