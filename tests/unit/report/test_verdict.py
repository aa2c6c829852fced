"""Ratios on a scale, and the verdict in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.explanations import RUN

from intarsia.report.verdict import RatioScale, headline, size_rows, verdict_rows


def test_the_scale_contains_every_interval() -> None:
    scale = RatioScale.of(RUN.contest)
    assert (scale.low, scale.high) == (0.95, 1.2)
    assert (scale.spot(0.95), scale.spot(1.2)) == (0.0, 100.0)
    wide = replace(RUN.contest[1], ratio_high=8.0, ratio_low=0.5)
    assert RatioScale.of((wide,)) == RatioScale(0.5, 8.0)
    assert RatioScale(0.5, 8.0).spot(1.0) == 25.0


def test_intervals_are_spans() -> None:
    scale = RatioScale(0.5, 8.0)
    chosen, slow, quick = verdict_rows(RUN, scale)
    assert (chosen.spot, chosen.span) == (25.0, (25.0, 0.0))
    assert slow.span == pytest.approx((scale.spot(1.07), scale.spot(1.11) - scale.spot(1.07)))
    assert (quick.spot, quick.span, quick.ratio) == (None, None, "wrong")


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.99, 1.2, "slow alone is within noise of it: 1.090 times as long (95 % interval 0.990 to 1.200)."),
        (1.07, 1.11, "slow alone took 1.090 times as long (95 % interval 1.070 to 1.110)."),
        (None, None, "slow alone took 1.090 times as long (too few rounds for an interval)."),
    ],
)
def test_the_lead(low: float | None, high: float | None, text: str) -> None:
    contest = (RUN.contest[0], replace(RUN.contest[1], ratio_low=low, ratio_high=high))
    assert (
        headline(replace(RUN, contest=contest)) == f"fast 1, slow 1 was chosen: 3.20 ms for one call. {text}"
    )


def test_a_toolchain_that_did_not_race() -> None:
    contest = (RUN.contest[0], replace(RUN.contest[1], ratio=None))
    assert headline(replace(RUN, contest=contest)).endswith(
        "slow alone took 3.50 ms in a single measurement, too long to race."
    )


def test_sizes_that_one_candidate_lacks() -> None:
    contest = (
        replace(RUN.contest[0], by_size=(("n=1", 1e-3), ("n=4", 2e-3))),
        replace(RUN.contest[1], by_size=(("n=4", 4e-3),)),
    )
    table = size_rows(replace(RUN, contest=contest))
    assert table is not None
    assert [(row.sizes, row.latencies, row.ratio) for row in table.rows] == [
        ("n=1", ("1.00 ms", "-"), "-"),
        ("n=4", ("2.00 ms", "4.00 ms"), "0.500"),
    ]
    assert size_rows(RUN) is None
