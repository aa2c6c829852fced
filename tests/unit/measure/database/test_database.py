"""The database, on SQLite and on PostgreSQL."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.measure_records import HERE, TARGET, THERE, candidate, failed, record, worked

from intarsia.measure.database import (
    Database,
    Hint,
    MeasureRecord,
    MergeCounts,
    ModelRecord,
    RunRecord,
    schema,
)
from intarsia.measure.measure_input import PlainData
from intarsia.measure.measure_result import MeasureError
from intarsia.support.errors import DatabaseError
from intarsia.target import Host, Target

pytestmark = pytest.mark.quick_tests(18)


def costing(trace: PlainData, cost: float, **place: str) -> MeasureRecord:
    return record(trace, worked(cost), **place)


def traces(records: tuple[MeasureRecord, ...]) -> list[object]:
    return [each.candidate.trace for each in records]


@pytest.mark.slow
def test_what_is_committed_is_found(database: Database) -> None:
    everything = [
        record(["split", 1, 2.5, None, {"a": "ä\0"}], worked(0.5, 0.25, 0.1 + 0.2, max_error=1e-7)),
        record("failure", failed(MeasureError.WRONG_ANSWER)),
        record("infinite", worked(0.5, max_error=math.inf)),
        record("without costs", worked()),
        record("surrogate", replace(worked(1.0), result=replace(worked(1.0).result, message="\ud800\0"))),
    ]
    for each in everything:
        database.commit(each)
    for each in everything:
        assert database.find(each.workload, Target(TARGET), each.candidate, HERE) == each


def test_nothing_else_is_found(database: Database) -> None:
    database.commit(record("c"))
    assert database.find("other", TARGET, candidate(), HERE) is None
    assert database.find("workload", "cpu", candidate(), HERE) is None
    assert database.find("workload", TARGET, candidate("d"), HERE) is None
    assert database.find("workload", TARGET, candidate(), THERE) is None


def test_a_second_measurement_adds_to_the_first(database: Database) -> None:
    first, second = worked(0.1, timestamp=1), worked(0.5, 0.6, timestamp=2)
    for each in (first, second, first):
        database.commit(record("c", each))
    assert database.find("workload", TARGET, candidate(), HERE) == record("c", first, second)
    assert [each.cost for each in database.top_k("workload", TARGET, HERE, 9)] == [0.5]


def test_a_failure_after_a_success_takes_it_off_the_list(database: Database) -> None:
    database.commit(record("c", worked(0.1, timestamp=1)))
    database.commit(record("c", failed(timestamp=2)))
    assert database.best("workload", TARGET, HERE) is None
    database.commit(record("c", worked(0.3, timestamp=3)))
    best = database.best("workload", TARGET, HERE)
    assert best is not None
    assert best.cost == 0.3


def test_the_best_are_those_of_workload_target_and_host(database: Database) -> None:
    elsewhere = [{"workload": "other"}, {"target": "cpu"}, {"host": THERE}]
    database.commit_many(costing("fast elsewhere", 0.001, **changes) for changes in elsewhere)
    database.commit_many([costing("slow", 3.0), costing("fast", 1.0), costing("middle", 2.0)])
    database.commit(record("failed", failed()))
    assert traces(database.top_k("workload", Target(TARGET), HERE, 2)) == ["fast", "middle"]
    assert traces(database.top_k("workload", TARGET, HERE, 9)) == ["fast", "middle", "slow"]
    best = database.best("workload", TARGET, HERE)
    assert best == costing("fast", 1.0)
    assert database.best("workload", "cpu -toolchain=openvino", HERE) is None


def test_equal_costs_are_ordered_in_the_same_way_everywhere(database: Database, other: Database) -> None:
    records = [costing(i, 1.0) for i in range(20)]
    database.commit_many(records)
    other.commit_many(reversed(records))
    assert database.top_k("workload", TARGET, HERE, 7) == other.top_k("workload", TARGET, HERE, 7)


def test_the_best_of_each_workload(database: Database) -> None:
    database.commit_many(
        [
            costing("a1", 2.0, workload="a"),
            costing("a2", 1.0, workload="a", target="cpu"),
            costing("a3", 0.1, workload="a", host=THERE),
            costing("b1", 5.0, workload="b"),
            record("c1", failed(), workload="c"),
        ]
    )
    best = database.best_per_workload(HERE)
    assert {name: each.candidate.trace for name, each in best.items()} == {"a": "a2", "b": "b1"}
    of_target = database.best_per_workload(HERE, Target(TARGET))
    assert {name: each.candidate.trace for name, each in of_target.items()} == {"a": "a1", "b": "b1"}


def test_other_hosts_give_hints_in_turn(database: Database) -> None:
    database.commit_many(
        [
            costing("mine", 1.0),
            costing("x1", 100.0, host="host-x"),
            costing("x2", 200.0, host="host-x"),
            costing("y1", 0.001, host="host-y"),
            costing("y2", 0.002, host="host-y"),
            costing("x1", 0.003, host="host-y"),
            record("failed", failed(), host="host-y"),
        ]
    )
    hints = database.hints("workload", TARGET, 9, HERE)
    x1, x2, y1, y2 = (
        Hint(f"host-{name[0]}", "schedule", f'"{name}"', int(name[1])) for name in ("x1", "x2", "y1", "y2")
    )
    assert set(hints[:2]) == {x1, y1}
    assert set(hints[2:]) == {x2, y2}
    assert len(database.hints("workload", TARGET, 3, HERE)) == 3
    assert {hint.host for hint in database.hints("workload", TARGET, 9, "host-y")} == {HERE, "host-x"}
    assert database.hints("workload", "cpu", 9, HERE) == ()


def test_many_are_committed_or_none(database: Database) -> None:
    def records() -> Iterator[MeasureRecord]:
        yield from (costing(i, 1.0) for i in range(1200))
        raise KeyError("the source of records failed")

    with pytest.raises(KeyError):
        database.commit_many(records())
    assert database.statistics().records == 0


def test_many_are_counted(database: Database) -> None:
    database.commit_many([costing("same", 1.0), costing("more", 1.0)])
    counts = database.commit_many(
        [
            costing("same", 1.0),
            record("more", worked(2.0, timestamp=2000)),
            costing("new", 1.0),
            costing("new", 1.0),
        ]
    )
    assert counts == MergeCounts(added=1, updated=1, skipped=1)
    more = database.find("workload", TARGET, candidate("more"), HERE)
    assert more is not None
    assert more.result.costs == (1.0, 2.0)


@pytest.mark.slow
def test_merging_adds_and_is_idempotent(database: Database, other: Database) -> None:
    host = Host.detect(root=Path("/nowhere"), cores=3)
    other.add_host(host)
    other.add_workload("workload", "name", "program")
    other.commit_many(costing(i, float(i + 1)) for i in range(1100))
    database.commit(costing(0, 1.0))
    database.commit(record(1, worked(9.0, timestamp=5)))
    assert database.merge(other) == MergeCounts(added=1098, updated=1, skipped=1)
    assert database.merge(other) == MergeCounts(added=0, updated=0, skipped=1100)
    assert database.host(host.digest) == host
    assert database.program("workload") == "program"
    assert other.merge(database) == MergeCounts(added=0, updated=1, skipped=1099)
    assert other.records_of("workload") == database.records_of("workload")


def test_merging_with_itself_changes_nothing(database: Database) -> None:
    database.commit(record("c"))
    assert database.merge(database) == MergeCounts(skipped=1)


def test_numbers(database: Database) -> None:
    empty = database.statistics()
    assert (empty.records, empty.by_error, empty.oldest, empty.newest) == (0, (), None, None)
    assert database.summaries() == ()
    database.add_workload("a", 'a "name"')
    database.commit_many(
        [
            record(1, worked(2.0, timestamp=10), workload="a"),
            record(2, worked(1.0, timestamp=20), workload="a"),
            record(3, failed(MeasureError.OUT_OF_MEMORY, 30), workload="a"),
            record(1, failed(timestamp=5), workload="b", host=THERE),
        ]
    )
    found = database.statistics()
    assert (found.location, found.schema_version) == (database.place, schema.VERSION)
    assert (found.records, found.workloads, found.hosts) == (4, 2, 2)
    assert (found.oldest, found.newest) == (5, 30)
    assert found.by_error == (
        (MeasureError.OK, 2),
        (MeasureError.CRASH, 1),
        (MeasureError.OUT_OF_MEMORY, 1),
    )
    assert found.bytes > 1000
    a, b = database.summaries()
    assert (a.workload, a.name, a.host, a.records, a.failed, a.best, a.newest) == (
        "a",
        'a "name"',
        HERE,
        3,
        1,
        1,
        30,
    )
    assert (b.workload, b.name, b.host, b.records, b.failed, b.best, b.newest) == (
        "b",
        "",
        THERE,
        1,
        1,
        math.inf,
        5,
    )


def test_what_digests_stand_for_is_told_once(database: Database) -> None:
    database.add_workload("w", "first", "the text\0")
    database.add_workload("w", "second", "another text")
    assert database.program("w") == "the text\0"
    assert database.program("v") is None
    assert database.host("h") is None


def test_it_is_all_there_when_opened_again(place: str) -> None:
    with Database.open(place) as database:
        database.commit(record("c"))
    with Database.open(place, create=False) as database:
        assert database.find("workload", TARGET, candidate(), HERE) == record("c")


def test_several_threads_use_one_database(database: Database) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(20):
                own = costing([number, i], 1.0 + i)
                database.commit(own)
                database.commit(record("shared", worked(1.0, timestamp=number % 4)))
                assert database.find("workload", TARGET, own.candidate, HERE) == own
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert database.statistics().records == 161
    shared = database.find("workload", TARGET, candidate("shared"), HERE)
    assert shared is not None
    assert [each.result.timestamp for each in shared.measurements] == [0, 1, 2, 3]


@pytest.mark.slow
def test_lines_of_one_kind_of_database_are_read_by_the_other(
    new_place: Callable[[], str], tmp_path: Path
) -> None:
    with Database.open(tmp_path / "file.db") as file, Database.open(new_place()) as other:
        file.add_host(Host.detect(root=Path("/nowhere"), cores=3))
        file.add_workload("workload", "name", "program\n")
        file.commit_many(record(i, worked(1.0, max_error=math.inf), failed(timestamp=2)) for i in range(600))
        file.commit_many(record(i, worked(1.0 / (i + 1))) for i in range(600, 1200))
        file.export_lines(tmp_path / "1.jsonl")
        assert other.import_lines(tmp_path / "1.jsonl") == MergeCounts(added=1200)
        assert other.import_lines(tmp_path / "1.jsonl") == MergeCounts(skipped=1200)
        counts = other.export_lines(tmp_path / "2.jsonl")
        assert (counts.workloads, counts.hosts, counts.records) == (1, 1, 1200)
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def test_lines_of_one_host(database: Database, tmp_path: Path) -> None:
    database.commit_many(costing(i, 1.0) for i in range(3))
    elsewhere = costing(0, 2.0, host="elsewhere", workload="other")
    database.commit(elsewhere)
    database.add_workload("other", "name", "program\n")
    counts = database.export_lines(tmp_path / "lines.jsonl", "elsewhere")
    assert (counts.workloads, counts.hosts, counts.records) == (1, 0, 1)
    database.collect_garbage(keep_top=0)
    database.import_lines(tmp_path / "lines.jsonl")
    assert database.records_of("other") == (elsewhere,)


def test_a_bad_line_imports_nothing(database: Database, tmp_path: Path) -> None:
    database.commit_many(costing(i, 1.0) for i in range(1100))
    path = tmp_path / "bad.jsonl"
    database.export_lines(path)
    lines = path.read_text().splitlines(keepends=True)
    lines[1050] = lines[1050].replace('"ok"', '"fine"')
    path.write_text("".join(lines))
    database.collect_garbage(keep_top=0)
    with pytest.raises(DatabaseError, match=r"line 1051 of .*bad\.jsonl is bad: 'fine' is not a valid"):
        database.import_lines(path)
    assert database.statistics().records == 0


def test_a_finished_run_is_found_by_its_question(database: Database) -> None:
    first = RunRecord("question", "workload", HERE, 10.0, '{"winner":"a"}')
    assert database.find_run("question") is None
    database.keep_run(first)
    assert database.find_run("question") == first
    later = replace(first, finished_at=20.0, outcome='{"winner":"b"}')
    database.keep_run(later)
    assert database.find_run("question") == later
    assert database.find_run("another") is None


def test_models_are_found_by_what_was_asked_of_them(database: Database) -> None:
    """Those of the newest runs first; those whose run is gone are not."""
    for name, asked, finished in (("a", "fast", 10.0), ("b", "fast", 30.0), ("c", "exact", 20.0)):
        database.keep_run(RunRecord(name, name, HERE, finished, "{}"))
        database.keep_model(ModelRecord(name, asked, "x y"))
    database.keep_model(ModelRecord("without a run", "fast", "x"))
    database.keep_model(ModelRecord("a", "fast", "x z"))
    newest, oldest = ModelRecord("b", "fast", "x y"), ModelRecord("a", "fast", "x z")
    assert database.find_models("fast", 9) == (newest, oldest)
    assert database.find_models("fast", 1) == (newest,)
    assert database.find_models("slow", 9) == ()


def test_all_runs_the_newest_first(database: Database) -> None:
    for name, finished in (("old", 10.0), ("new", 30.0), ("middle", 20.0)):
        database.keep_run(RunRecord(name, name, HERE, finished, "{}"))
    assert [run.key for run in database.runs()] == ["new", "middle", "old"]
