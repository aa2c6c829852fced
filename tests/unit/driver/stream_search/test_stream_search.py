"""Choices of streams, threads and batch: which there are, which are refused, and which one is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of

import intarsia as ia
from intarsia.driver.stream_search.objective import LoadOptions, Objective, read_batches, read_objective
from intarsia.driver.stream_search.search_streams import search_streams, stream_choices
from intarsia.driver.stream_search.stored_loads import StoredLoads
from intarsia.driver.stream_search.stream_record import StreamRecord
from intarsia.measure.database import Database
from intarsia.runtime.executable import Executable
from intarsia.runtime.stream_choice import StreamChoice
from intarsia.support.callbacks import never
from intarsia.support.errors import UsageError
from intarsia.toolchain.this_host import this_host

ROWS = "g (float[n,8] x) => (float[n,8] y) { a = Relu (x) y = Softmax (a) }"
ACROSS = "g (float[n,8] x) => (float[n,8] y) { y = Softmax <axis = 0> (x) }"
FIXED = "g (float[1,8] x) => (float[1,8] y) { y = Relu (x) }"
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)


def built(text: str) -> Executable:
    return ia.build(ia.from_onnx(model_of(text)), "cpu -toolchain=onnxruntime -threads=1")


def loads(database: Database | None = None, concurrency: int = 4, program: str = "ort") -> StoredLoads:
    return StoredLoads(database, "digest", "model", this_host(), concurrency, {"ort": program})


def test_choices_fill_the_cores_once_and_twice() -> None:
    choices = list(stream_choices(4, 100, (1, 1)))
    assert choices == sorted(StreamChoice(*pair) for pair in [(4, 1), (8, 1), (2, 2), (4, 2), (1, 4), (2, 4)])


def test_no_more_streams_than_requests_under_way() -> None:
    assert {choice.streams for choice in stream_choices(8, 2, (1, 1))} == {1, 2}


def test_batches_are_the_bounds_and_the_powers_of_two_between() -> None:
    assert sorted({choice.batch for choice in stream_choices(1, 9, (3, 20))}) == [3, 4, 8, 16, 20]


@pytest.mark.parametrize("objective", [Objective.THROUGHPUT, Objective.P99])
def test_every_choice_is_measured_and_the_best_is_in_front(objective: Objective) -> None:
    with built(ROWS) as exe:
        records = search_streams({"ort": exe}, [X], LoadOptions(objective, 4, (1, 8)), 2, 0.5, never, loads())
    assert {record.choice for record in records} == set(stream_choices(2, 4, (1, 8)))
    assert [record.chosen for record in records] == [True, *[False] * (len(records) - 1)]
    timed = [record for record in records if record.load is not None]
    assert records[0] in timed
    if objective is Objective.P99:
        assert records[0].load is not None
        assert records[0].load.p99 == min(record.load.p99 for record in timed if record.load)
    else:
        assert records[0].rate == max(record.rate for record in timed)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ACROSS, "joined calls give other results: its items depend on one another"),
        (
            FIXED,
            "calls cannot be joined: all inputs and outputs must begin with the same symbolic",
        ),
    ],
)
def test_programs_whose_calls_cannot_be_joined_say_why(text: str, reason: str) -> None:
    with built(text) as exe:
        records = search_streams(
            {"ort": exe}, [X], LoadOptions(Objective.THROUGHPUT, 4, (1, 4)), 2, 0.2, never, loads()
        )
    joined = [record for record in records if record.choice.batch > 1]
    assert joined
    assert all(record.reason.startswith(reason) for record in joined)
    assert records[0].choice.batch == 1


class TestStoredLoads:
    OPTIONS = LoadOptions(Objective.THROUGHPUT, 4, (1, 2))

    @pytest.fixture
    def database(self, tmp_path: Path) -> Iterator[Database]:
        with Database.open(tmp_path / "measurements.db") as opened:
            yield opened

    def search(
        self, stored: StoredLoads, should_stop: Callable[[], bool] = never, seconds: float = 0.3
    ) -> tuple[StreamRecord, ...]:
        with built(ROWS) as exe:
            return search_streams({"ort": exe}, [X], self.OPTIONS, 2, seconds, should_stop, stored)

    def test_a_repeated_run_measures_nothing_and_decides_the_same(self, database: Database) -> None:
        first = self.search(once := loads(database))
        assert once.measured > 0
        for _ in range(5):
            second = self.search(again := loads(database))
            if again.measured == 0:
                break
            first = second  # a slice in which a busy machine has served no request is not kept
        assert again.measured == 0
        assert [(record.choice, record.chosen) for record in second] == [
            (record.choice, record.chosen) for record in first
        ]
        assert [record.rate for record in second] == pytest.approx([record.rate for record in first])
        assert first[0].load is not None
        assert second[0].load is not None
        assert second[0].load.p99 == first[0].load.p99
        assert database.statistics().hosts == 1

    def test_an_interrupted_run_goes_on_where_it_was(self, database: Database) -> None:
        calls = count()
        part = loads(database)
        # The first stage ends, and nothing is measured after it.
        self.search(part, should_stop=lambda: next(calls) >= 0)
        rest = loads(database)
        self.search(rest)
        assert part.measured > 0
        assert rest.measured > 0
        assert part._used <= rest._used, "all that is stored was used"

    @pytest.mark.parametrize("change", [{"concurrency": 3}, {"program": "another"}])
    def test_another_load_is_measured(self, database: Database, change: dict[str, Any]) -> None:
        self.search(loads(database))
        self.search(other := loads(database, **change))
        assert other.measured > 0

    def test_longer_slices_are_measured(self, database: Database) -> None:
        self.search(loads(database))
        self.search(longer := loads(database), seconds=0.9)
        assert longer.measured > 0

    def test_latencies_of_the_model_do_not_compare_with_loads(self, database: Database) -> None:
        self.search(loads(database))
        assert database.records_of("digest") == ()


def test_objectives_and_batches_are_read() -> None:
    assert read_objective("p99") is Objective.P99
    assert [read_batches(value) for value in ("1..16", "8", 8, (2, 4))] == [(1, 16), (8, 8), (8, 8), (2, 4)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: read_objective("speed"), 'objective is "speed", expected latency, throughput, p99'),
        (lambda: read_batches("1-8"), 'batch is "1-8", expected a number or a range'),
        (lambda: LoadOptions(Objective.P99, 4, (8, 2)), "batch is 8..2, expected a range from 1 to 65536"),
        (lambda: LoadOptions(Objective.P99, 0), "concurrency is 0, expected 1 or more"),
        (lambda: LoadOptions(concurrency=4), "concurrency and batch are for throughput and p99"),
    ],
)
def test_options_that_are_refused(make: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()  # type: ignore[operator]


@pytest.mark.processes
def test_an_artifact_remembers_what_was_chosen(tmp_path: Path) -> None:
    result = ia.tune(
        ia.from_onnx(model_of(ROWS)),
        inputs={"x": X},
        budget="3s",
        targets=["native", "onnxruntime"],
        objective="throughput",
        concurrency=4,
        batch="1..4",
    )
    best = result.streams[0]
    assert best.chosen
    assert best.name in {record.name for record in result.candidates}
    result.save(tmp_path / "a.intarsia")
    with ia.load(tmp_path / "a.intarsia") as exe, ia.Pool(exe) as pool:
        assert pool.choice == best.choice
        np.testing.assert_allclose(pool(X), exe(X), rtol=1e-5)
    with ia.Pool(exe := ia.load(tmp_path / "a.intarsia"), streams=1) as pool:
        assert pool.choice == StreamChoice(1, 1, 1)
    exe.close()
    assert any("requests per second" in note for note in result.explanation.notes)
