"""The best of logs, and of workloads of other sizes."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from tests.each_case import each_case

from intarsia.autoschedule.measuring import (
    best_of_each,
    best_record,
    calc_workload_dis_factor,
    distill,
    load_best_record,
    load_records,
    save_records,
)
from intarsia.autoschedule.measuring.best_records import DistilledCounts
from intarsia.native.loop_state.record import Record, RecordResult, RecordTask
from intarsia.native.loop_state.steps import SplitStep
from intarsia.support.errors import DatabaseError
from intarsia.target import Target

LARGE, SMALL = '["dense", 16, 8, 512]', '["dense", 2, 4, 256]'


def record(
    *costs: float, split: int = 4, key: str = LARGE, target: str = "cpu -toolchain=native", error: int = 0
) -> Record:
    """A record of a schedule that is named by the length of a split."""
    task = RecordTask(key, target, (2, 64, 64, 0, 0, 0, 0, 0), "", 1, ())
    result = RecordResult(costs or (1e10,), error, 0.5, 1600000000)
    return Record(task, (SplitStep(2, 0, 512, (split,), True),), result)


@each_case(
    ("wanted", "known", "factor"),
    [
        ('["a", 16, 8, 512, 3]', '["a", 2, 4, 256, 3]', 8 * 2 * 2),
        ('["a", 16, [8, 512], "same"]', '["a", 2, [4, 256], "same"]', 8 * 2 * 2),
        ('["a", 16]', '["a", 16]', 1),
        ('["a", 16]', '["b", 16]', inf),
        ('["a", 16]', '["a", 3]', inf),
        ('["a", 2]', '["a", 16]', inf),
        ('["a", 16, 0]', '["a", 8, 0]', 2),
        ('["a", 16, 0]', '["a", 8, 4]', inf),
        ('["a", 16, 4]', '["a", 8, 0]', inf),
        ('["a", 16, "SAME"]', '["a", 8, "VALID"]', inf),
        ('["a", 16, 1.5]', '["a", 8, 0.5]', inf),
        ('["a", 2, true]', '["a", 1, true]', 2),
        ('["a", 2, true]', '["a", 1, 1]', inf),
        ('["a", 16]', '["a", 16, 1]', inf),
        ('["a", [4, 4], 4]', '["a", [2], 2, 2]', inf),
        ("conv", "conv", 1),
        ("conv", '["conv"]', inf),
    ],
)
def test_how_far_workloads_are_apart(wanted: str, known: str, factor: float) -> None:
    assert calc_workload_dis_factor(wanted, known) == factor


def test_the_best_is_that_with_the_lowest_median(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    lucky, steady, failed = record(0.1, 0.9, 0.9), record(0.5, 0.6, 0.7, split=8), record(split=16, error=4)
    save_records(path, [failed, lucky, steady])
    assert load_best_record(path) == steady
    assert load_best_record(path, LARGE, Target("cpu -toolchain=native")) == steady
    assert load_best_record(path, SMALL) is None


def test_the_winner_of_the_last_confirmation_is_the_best_until_something_is_faster(tmp_path: Path) -> None:
    lucky, unlucky = record(0.1), record(0.5)
    won = replace(record(0.4, split=8), is_confirmed=True)
    log = [lucky, record(0.2, split=8), unlucky, won, record(0.6, split=16)]
    assert best_record(log) == won
    save_records(tmp_path / "log.json", log)
    assert load_records(tmp_path / "log.json") == tuple(log)
    distill(tmp_path / "log.json", tmp_path / "best.json")
    assert load_records(tmp_path / "best.json") == (won,)
    faster = record(0.3, split=32)
    assert best_record([*log, faster]) == faster
    assert best_record([*log, faster, won]) == won
    assert best_record([*log[:4], record(split=8, error=4)]) == unlucky


def test_all_costs_of_a_schedule_count() -> None:
    again = record(0.8, 0.8, 0.8, 0.8)
    other = record(0.5, split=8)
    assert best_record([record(0.1), other, again]) == other
    assert best_record([record(0.1), other]) == record(0.1)


def test_a_schedule_that_failed_at_last_is_not_the_best() -> None:
    assert best_record([record(0.1), record(0.5, split=8), record(error=5)]) == record(0.5, split=8)
    assert best_record([record(error=5), record(0.1)]) == record(0.1)


def test_targets_are_compared_by_kind() -> None:
    ours, gpu, theirs = record(0.5), record(0.1, target="cuda -keys=cuda"), record(0.4, target="llvm -mcpu=x")
    assert best_record([ours, gpu], LARGE, "cpu -toolchain=openvino") == ours
    assert best_record([ours, gpu], LARGE) == gpu
    assert best_record([ours, gpu, theirs], LARGE, "cpu") == theirs


def test_schedules_of_smaller_workloads_count_with_their_factor() -> None:
    small, large = record(0.1, key=SMALL), record(3.0)
    records = [small, large, record(0.001, key='["dense", 3, 4, 256]')]
    assert best_record(records, LARGE) == large
    assert best_record(records, LARGE, include_compatible=True) == large
    assert best_record([*records[:1], record(3.3)], LARGE, include_compatible=True) == small


def test_distilling_keeps_the_best_of_each_workload_and_target(tmp_path: Path) -> None:
    source, into = tmp_path / "log.json", tmp_path / "best.json"
    best, other, gpu = record(0.1, split=8), record(0.3, key=SMALL), record(0.2, target="cuda")
    failed = record(error=2, key='["never"]')
    save_records(source, [record(0.5), best, other, record(0.4, key=SMALL, split=2), gpu, failed])
    assert distill(source, into) == DistilledCounts(6, 3)
    assert load_records(into) == (best, other, gpu)


def test_distilling_into_a_file_that_is_there_merges(tmp_path: Path) -> None:
    source, into = tmp_path / "log.json", tmp_path / "best.json"
    better, alone = record(0.05, split=16), record(0.7, key=SMALL)
    save_records(into, [better, alone])
    save_records(source, [record(0.1)])
    assert distill(source, into) == DistilledCounts(3, 2)
    assert load_records(into) == (better, alone)
    assert distill(source, into) == DistilledCounts(3, 2)
    assert best_of_each(load_records(into)) == (better, alone)


def test_a_damaged_log_leaves_what_is_there(tmp_path: Path) -> None:
    source, into = tmp_path / "log.json", tmp_path / "best.json"
    save_records(into, [record(0.1)])
    source.write_text("{}\n")
    with pytest.raises(DatabaseError):
        distill(source, into)
    assert load_records(into) == (record(0.1),)
