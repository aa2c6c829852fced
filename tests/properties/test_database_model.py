"""The database against a model of it: dictionaries of sets of measurements."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.effort import examples
from tests.measure_records import candidate, failed, worked

from intarsia.measure.database import Database, Measurement, MeasureRecord, MergeCounts
from intarsia.measure.measure_result import MeasureError

Key: TypeAlias = tuple[str, str, str, int]
"""Workload, target, host, trace."""
Model: TypeAlias = dict[Key, frozenset[Measurement]]

WORKLOADS, TARGETS, HOSTS = ("v", "w"), ("cpu", "cpu -toolchain=native"), ("here", "there")
SIDES = st.sampled_from(("left", "right"))
GROUPS = (("v", "cpu", "here"), ("v", "cpu", "there"), ("v", TARGETS[1], "here"), ("w", "cpu", "here"))
keys = st.builds(lambda group, trace: (*group, trace), st.sampled_from(GROUPS), st.integers(0, 2))
times = st.integers(1, 3).map(float)
# Fewer different ones than are kept of a candidate.
measurements = st.one_of(
    st.builds(
        lambda costs, time: worked(*costs, timestamp=time),
        st.sampled_from([(), (0.5,), (1.0, 4.0)]),
        times,
    ),
    st.builds(failed, st.sampled_from([MeasureError.CRASH, MeasureError.COMPILE]), times),
)
items = st.tuples(keys, measurements)


def record(key: Key, *found: Measurement) -> MeasureRecord:
    workload, target, host, trace = key
    return MeasureRecord(workload, target, host, "schedule", candidate(trace).text, found)


def last_time(found: frozenset[Measurement]) -> float:
    return max(each.result.timestamp for each in found)


def cost(found: frozenset[Measurement]) -> float | None:
    """The median of all repeats after the last failure; None for a failure or where there are none."""
    failures = [each.result.timestamp for each in found if not each.result.is_ok]
    after = max(failures, default=0.0)
    costs = [value for each in found if each.result.timestamp > after for value in each.result.costs]
    return statistics.median(costs) if costs else None


def ranking(model: Model, workload: str, target: str, host: str) -> list[tuple[float, str]]:
    """Cost and key of all that have a cost, the best first."""
    found = []
    for key, measured in model.items():
        value = cost(measured)
        if key[:3] == (workload, target, host) and value is not None:
            found.append((value, record(key, *measured).key))
    return sorted(found)


class DatabaseMachine(RuleBasedStateMachine):
    """Two databases and their models."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.databases = {
            side: Database.open(Path(self.folder.name, f"{side}.db")) for side in ("left", "right")
        }
        self.models: dict[str, Model] = {"left": {}, "right": {}}

    def teardown(self) -> None:
        for database in self.databases.values():
            database.close()
        self.folder.cleanup()

    @rule(side=SIDES, item=items)
    def commit(self, side: str, item: tuple[Key, Measurement]) -> None:
        self.databases[side].commit(record(*item))
        add(self.models[side], [item])

    @rule(side=SIDES, batch=st.lists(items, min_size=2, max_size=12))
    def commit_many(self, side: str, batch: list[tuple[Key, Measurement]]) -> None:
        counts = self.databases[side].commit_many(record(*item) for item in batch)
        assert counts == add(self.models[side], batch)

    @rule(source=SIDES, into=SIDES, by_file=st.booleans())
    def merge(self, source: str, into: str, by_file: bool) -> None:
        if by_file:
            path = Path(self.folder.name, "lines.jsonl")
            exported = self.databases[source].export_lines(path)
            assert exported.records == len(self.models[source])
            counts = self.databases[into].import_lines(path)
        else:
            counts = self.databases[into].merge(self.databases[source])
        batch = [(key, each) for key, found in self.models[source].items() for each in found]
        assert counts == add(self.models[into], batch)

    @rule(
        side=SIDES,
        keep_top=st.none() | st.integers(0, 2),
        older_than=st.none() | times,
        other_hosts=st.none() | st.sampled_from(HOSTS),
    )
    def collect_garbage(
        self, side: str, keep_top: int | None, older_than: float | None, other_hosts: str | None
    ) -> None:
        if keep_top is None and older_than is None and other_hosts is None:
            return
        model, kept = self.models[side], set()
        for key, found in model.items():
            top = ranking(model, *key[:3])[:keep_top]
            is_top = keep_top is not None and record(key, *found).key in {name for _, name in top}
            is_young = older_than is not None and last_time(found) >= older_than
            if is_top or is_young or key[2] == other_hosts:
                kept.add(key)
        removed = self.databases[side].collect_garbage(
            keep_top=keep_top, older_than=older_than, other_hosts=other_hosts
        )
        assert removed.records == len(model) - len(kept)
        self.models[side] = {key: model[key] for key in kept}

    @rule(side=SIDES, key=keys)
    def find(self, side: str, key: Key) -> None:
        workload, target, host, trace = key
        found = self.databases[side].find(workload, target, candidate(trace), host)
        expected = self.models[side].get(key)
        assert found == (None if expected is None else record(key, *expected))
        best, ranked = self.databases[side].best(workload, target, host), ranking(self.models[side], *key[:3])
        assert (best.key if best else None) == (ranked[0][1] if ranked else None)

    @rule(side=SIDES, host=st.sampled_from(HOSTS), k=st.integers(1, 4))
    def best_and_hints(self, side: str, host: str, k: int) -> None:
        database, model = self.databases[side], self.models[side]
        for on in (None, *TARGETS):
            ranked = {
                workload: [
                    each
                    for target in (TARGETS if on is None else (on,))
                    for each in ranking(model, workload, target, host)
                ]
                for workload in WORKLOADS
            }
            best = database.best_per_workload(host, on)
            assert {workload: each.key for workload, each in best.items()} == {
                workload: min(each)[1] for workload, each in ranked.items() if each
            }
        (other,) = set(HOSTS) - {host}
        for workload, target, _ in GROUPS:
            hints = database.hints(workload, target, k, host)
            keys = [record((workload, target, hint.host, int(hint.trace)), worked()).key for hint in hints]
            assert keys == [name for _, name in ranking(model, workload, target, other)][:k]

    @invariant()
    def contents(self) -> None:
        for side, model in self.models.items():
            found = [each for workload in WORKLOADS for each in self.databases[side].records_of(workload)]
            expected = {record(key, *measured) for key, measured in model.items()}
            assert (len(found), set(found)) == (len(expected), expected)
            assert self.databases[side].statistics().records == len(expected)

    @invariant()
    def rankings(self) -> None:
        for side, model in self.models.items():
            for group in GROUPS:
                expected = ranking(model, *group)
                for k in (1, 2, 9):
                    found = self.databases[side].top_k(*group, k)
                    assert [(each.cost, each.key) for each in found] == expected[:k]


def add(model: Model, batch: list[tuple[Key, Measurement]]) -> MergeCounts:
    """Add measurements to a model, all of a batch at once."""
    given: Model = {}
    for key, measurement in batch:
        given[key] = given.get(key, frozenset()) | {measurement}
    added = sum(key not in model for key in given)
    skipped = sum(key in model and given[key] <= model[key] for key in given)
    for key, found in given.items():
        model[key] = model.get(key, frozenset()) | found
    return MergeCounts(added, len(given) - added - skipped, skipped)


TestDatabase = pytest.mark.slow(DatabaseMachine.TestCase)
TestDatabase.settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None)
