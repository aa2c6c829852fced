"""The table of latencies by size."""

from __future__ import annotations

from dataclasses import replace

from intarsia.cli.reports.size_table import size_tables
from intarsia.tune.contest.candidate_record import CandidateRecord, Status

WINNER = CandidateRecord(
    "native", "cpu -toolchain=native", Status.MEASURED, chosen=True, by_size=(("n=8", 4e-3), ("n=1", 1e-3))
)
OTHER = CandidateRecord(
    "openvino", "cpu -toolchain=openvino", Status.MEASURED, by_size=(("n=8", 5e-3), ("n=1", 1e-3))
)


def test_rows_by_size_with_the_ratio_to_the_best_other() -> None:
    (table,) = size_tables([WINNER, OTHER])
    assert table.headers == ("sizes", "native", "openvino", "native to the best other")
    assert table.rows == (
        ("n=1", "1.00 ms", "1.00 ms", "1.000"),
        ("n=8", "4.00 ms", "5.00 ms", "0.800"),
    )


def test_a_size_that_nothing_else_has() -> None:
    (table,) = size_tables([WINNER, replace(OTHER, by_size=(("n=1", 2e-3),))])
    assert table.rows[1] == ("n=8", "4.00 ms", "-", "-")


def test_no_table_for_static_models_and_without_a_race() -> None:
    assert size_tables([replace(WINNER, by_size=())]) == ()
    assert size_tables([replace(WINNER, by_size=()), OTHER]) == ()
