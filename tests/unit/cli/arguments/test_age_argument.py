"""Ages as people write them."""

from __future__ import annotations

import pytest

from intarsia.cli.arguments.age import parse_age
from intarsia.support.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"), [("90m", 5400), ("12h", 43200), ("1.5d", 129600), (" 2w ", 1209600), ("0d", 0)]
)
def test_ages(text: str, seconds: float) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1 d", "1y", "1e3d", "1d2h"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_age(text)
    assert str(caught.value) == (
        f'{text!r} is not an age\nhelp: write minutes, hours, days or weeks: "90m", "30d"'
    )
