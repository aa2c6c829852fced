"""How a run divides its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from intarsia.driver.tune_run import LEAST_REPEAT_SECONDS, RACE_ROUNDS, expected_race_seconds
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.tune.contest.contest import HOPELESS, Contest


class Measured:
    """A contest whose candidates were measured."""

    def __init__(self, costs: Sequence[float | None]) -> None:
        self._costs = costs

    def results(self) -> dict[Any, MeasureResult]:
        failed = MeasureResult((), MeasureError.RUNTIME, "it crashed", 1.0, 0.0)
        works = MeasureError.OK
        return {
            number: failed if cost is None else MeasureResult((cost,), works, "", 1.0, 0.0)
            for number, cost in enumerate(self._costs)
        }


@pytest.mark.parametrize(
    ("costs", "repeats"),
    [
        ([0.1], 0.1 + 0.1),
        ([0.1, 0.2, None], 0.1 + 0.2 + 0.1),
        ([0.1, 0.1 * HOPELESS * 1.01], 0.1 + 0.1),
        ([1e-6, 2e-6], 3 * LEAST_REPEAT_SECONDS),
    ],
    ids=["one", "a failed one", "a hopeless one", "fast ones"],
)
def test_a_race_is_expected_to_take_some_rounds_of_all_that_may_win(
    costs: list[float | None], repeats: float
) -> None:
    assert expected_race_seconds(cast("Contest", Measured(costs))) == pytest.approx(RACE_ROUNDS * repeats)


def test_a_contest_without_results_has_no_race() -> None:
    assert expected_race_seconds(cast("Contest", Measured([None]))) == float("inf")
