"""Budgets as people write them."""

from __future__ import annotations

import pytest

from intarsia.driver.budget import parse_budget
from intarsia.support.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("5m", 300.0), ("1.5h", 5400.0), ("10", 10.0), ("0", 0.0), (0.5, 0.5), (" 2 m ", 120.0)],
)
def test_budgets(text: str | float, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "fast", "-1s", "5d", float("nan"), float("inf"), -3])
def test_what_is_no_budget(text: str | float) -> None:
    with pytest.raises(UsageError) as caught:
        parse_budget(text)
    assert (
        str(caught.value) == f'the budget {text!r} is not a time\nhelp: write seconds, or "90s", "5m", "1h"'
    )
