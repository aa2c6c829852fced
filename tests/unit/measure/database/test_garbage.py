"""What the garbage collection removes, on SQLite and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.measure_records import HERE, THERE, failed, record, worked

from intarsia.measure.database import Database, ModelRecord, RemovedCounts, RunRecord
from intarsia.support.errors import UsageError
from intarsia.target import Host


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        ({"keep_top": 1}, ["best", "there"]),
        ({"keep_top": 0}, []),
        ({"older_than": 50.0}, ["failed", "new", "there"]),
        ({"other_hosts": HERE}, ["best", "failed", "new", "old"]),
        ({"keep_top": 1, "older_than": 50.0}, ["best", "failed", "new", "there"]),
        ({"keep_top": 0, "older_than": 50.0, "other_hosts": HERE}, ["best", "failed", "new", "old", "there"]),
    ],
)
def test_garbage(database: Database, conditions: dict[str, float], left: list[str]) -> None:
    database.commit_many(
        [
            record("best", worked(1.0, timestamp=10)),
            record("old", worked(2.0, timestamp=20)),
            record("new", worked(3.0, timestamp=60)),
            record("failed", failed(timestamp=70)),
            record("there", worked(0.5, timestamp=80), host=THERE),
        ]
    )
    removed = database.collect_garbage(**conditions)  # type: ignore[arg-type]  # each of its own type
    found = [str(each.candidate.trace) for each in database.records_of("workload")]
    assert sorted(found) == left
    assert removed.records == 5 - len(left)


def test_garbage_takes_what_nothing_refers_to(database: Database) -> None:
    host = Host.detect(root=Path("/nowhere"), cores=3)
    database.add_host(host)
    database.add_workload("workload", "kept")
    database.add_workload("unused", "removed", "text")
    database.commit(record("c"))
    assert database.collect_garbage(older_than=0.0) == RemovedCounts(records=0, workloads=1, hosts=1)
    assert database.host(host.digest) is None
    assert database.program("unused") is None
    assert database.summaries()[0].name == "kept"


def test_garbage_needs_a_condition(database: Database) -> None:
    database.commit(record("c"))
    with pytest.raises(UsageError, match="nothing says which records to remove"):
        database.collect_garbage()
    with pytest.raises(UsageError, match="the best -1 records"):
        database.collect_garbage(keep_top=-1)
    assert database.statistics().records == 1


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        ({"older_than": 50.0}, ["new", "there"]),
        ({"other_hosts": HERE}, ["new", "old"]),
        ({"keep_top": 1}, ["new", "old", "there"]),
        ({"keep_top": 0}, []),
    ],
)
def test_garbage_takes_finished_runs(
    database: Database, conditions: dict[str, float], left: list[str]
) -> None:
    database.commit(record("c", worked(1.0, timestamp=100)))
    database.keep_run(RunRecord("old", "workload", HERE, 10.0, "{}"))
    database.keep_run(RunRecord("new", "workload", HERE, 60.0, "{}"))
    database.keep_run(RunRecord("there", "workload", THERE, 60.0, "{}"))
    database.keep_run(RunRecord("unmeasured", "another workload", HERE, 60.0, "{}"))
    names = ("new", "old", "there", "unmeasured")
    for name in names:
        database.keep_model(ModelRecord(name, "asked", "a"))
    database.collect_garbage(**conditions)  # type: ignore[arg-type]  # each of its own type
    assert [name for name in names if database.find_run(name) is not None] == left
    assert sorted(model.run for model in database.find_models("asked", 9)) == left
