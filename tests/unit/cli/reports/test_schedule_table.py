"""Kernels whose schedules were searched, as a table and in words."""

from __future__ import annotations

from dataclasses import replace

from intarsia.autoschedule.tuning.schedule_records import ScheduleProgress, ScheduleRow
from intarsia.cli.console.progress import step_text
from intarsia.cli.reports.schedule_table import schedule_lines, schedule_tables
from intarsia.cli.reports.table import plain_table
from intarsia.driver.progress import Progress, TuneStage
from intarsia.measure.measure_result import MeasureError

CONV = ScheduleRow(
    name="conv_relu_12",
    weight=2,
    trials=64,
    failed={MeasureError.COMPILE: 1, MeasureError.CRASH: 2},
    default_seconds=60e-6,
    seconds=48e-6,
    flop_per_second=312.4e9,
    share_of_peak=0.713,
    is_chosen=True,
)
SLICE = ScheduleRow("slice_34", 1, 1, {}, 1e-6, 0.9e-6, None, None, is_chosen=False)
UNTRIED = ScheduleRow("softmax_56", 1, 0, {MeasureError.UNKNOWN: 1}, None, None, None, None, is_chosen=False)


def test_a_table_of_kernels() -> None:
    (table,) = schedule_tables([CONV, SLICE, UNTRIED])
    assert plain_table(table) == (
        "kernel        calls  schedules  failed            default     best  GFLOP/s  of peak  chosen\n"
        "conv_relu_12      2         64  compile, 2 crash  60.0 us  48.0 us    312.4      71%  yes\n"
        "slice_34          1          1  -                 1.00 us  0.90 us        -        -\n"
        "softmax_56        1          0  unknown                 -        -        -        -"
    )


def test_what_the_kernels_gain() -> None:
    assert schedule_lines([CONV, SLICE, UNTRIED]) == [
        "schedules: 65 measured, faster ones for 1 of 3 kernels: 121 us of a run become 97.0 us"
    ]
    assert schedule_lines([SLICE]) == ["schedules: 1 measured, faster ones for 0 of 1 kernels"]


def test_kernels_that_were_not_searched_are_counted_by_reason() -> None:
    left = replace(UNTRIED, reason="it takes too little of the time to matter: 0.3 % of it")
    rows = [CONV, left, replace(left, name="softmax_57"), replace(SLICE, reason="it is near its roofline")]
    (table,) = schedule_tables(rows)
    assert [row[0] for row in table.rows] == ["conv_relu_12"]
    assert schedule_lines(rows)[1] == (
        "kernels that were not searched: 2 because it takes too little of the time to matter; "
        "1 because it is near its roofline"
    )


def test_where_nothing_was_searched_there_is_nothing() -> None:
    assert schedule_tables(()) == ()
    assert schedule_lines(()) == []


def test_a_round_in_words() -> None:
    def words(row: ScheduleRow) -> str:
        return step_text(Progress(TuneStage.SCHEDULES, 0.5, scheduled=ScheduleProgress(row, 99, None, 0.5)))

    assert words(CONV) == (
        "searching schedules: conv_relu_12, 64 schedules, best 48.0 us, default 60.0 us, 312.4 GFLOP/s, "
        "71% of peak, 3 failed (compile, 2 crash)"
    )
    assert (
        words(replace(SLICE, default_seconds=None))
        == "searching schedules: slice_34, 1 schedule, best 0.90 us"
    )
    assert words(UNTRIED) == "searching schedules: softmax_56, 0 schedules, 1 failed (unknown)"
