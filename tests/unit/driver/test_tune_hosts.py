"""One run for the workers of several kinds of machines: an answer for each, measurements kept apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.unit.measure.testbed import other_workers
from tests.unit.measure.testbed.dask_processes import Processes, dask_processes
from tests.unit.measure.testbed.other_workers import UNLIKE
from tests.unit.measure.worker_pool.live_processes import until

import intarsia as ia
from intarsia.driver.tune_hosts import HostAnswer, tune_hosts
from intarsia.measure.database import Database
from intarsia.support.errors import StoppedError, UsageError
from intarsia.toolchain.this_host import this_host

pytestmark = pytest.mark.processes

OPTIONS: dict[str, Any] = {"budget": "0.5s", "targets": ["onnxruntime"], "threads": 1}
OTHER_CORES = 777
"""Number of cores of the simulated other machine."""


def start_other(cluster: Processes) -> None:
    """Start a worker that is another machine."""
    cluster.start_worker("--preload", str(other_workers.__file__), environment={UNLIKE: "another machine"})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Two workers such as this machine, and one that is another."""
    with dask_processes(tmp_path_factory.mktemp("dask")) as processes:
        for _ in range(2):
            processes.start_worker()
        start_other(processes)
        processes.expect_workers(3)
        yield processes


def measured_cores(database: Database) -> list[int]:
    """Return the number of cores of the machine of each measurement."""
    cores = []
    for summary in database.summaries():
        for record in database.records_of(summary.workload):
            host = database.host(record.host)
            assert host is not None
            cores += [host.cores] * len(record.measurements)
    return cores


def check(answers: tuple[HostAnswer, ...], folder: Path) -> None:
    """Check that each kind of machine has an answer of its own."""
    here = this_host()
    assert [(answer.threads, answer.host.cores) for answer in answers] == [(2, here.cores), (1, OTHER_CORES)]
    for answer in answers:
        assert answer.error is None
        assert answer.result["host"] == answer.host.to_json()
        assert answer.chosen["toolchain"] == "onnxruntime"
        assert answer.chosen["latency_seconds"] > 0
        answer.save(folder / f"{answer.name}.intarsia")
        with ia.load(folder / f"{answer.name}.intarsia") as exe:
            assert exe.self_test() < 1e-4
    assert len({answer.name for answer in answers}) == 2


def test_a_file_gets_the_measurements_of_every_machine(cluster: Processes, tmp_path: Path) -> None:
    with closing(Database.open(tmp_path / "measurements.db")) as database:
        first = tune_hosts("zoo:mnist", cluster=cluster.address, database=database, **OPTIONS)
        check(first, tmp_path)
        cores = measured_cores(database)
        assert set(cores) == {this_host().cores, OTHER_CORES}
        again = tune_hosts("zoo:mnist", cluster=cluster.address, database=database, **OPTIONS)
        check(again, tmp_path)
        assert measured_cores(database) == cores, "the second run has measured nothing"
    assert [answer.chosen["latency_seconds"] for answer in first] == [
        answer.chosen["latency_seconds"] for answer in again
    ]


def test_an_error_on_one_machine_is_its_own(cluster: Processes) -> None:
    """The budget of 0 repeats an earlier run, and there is none for either machine."""
    answers = tune_hosts("zoo:mnist", cluster=cluster.address, **{**OPTIONS, "budget": 0})
    assert len(answers) == 2
    for answer in answers:
        assert isinstance(answer.error, UsageError)
        assert (answer.chosen, answer.artifact) == ({}, b"")
        with pytest.raises(UsageError):
            answer.save("never written")


def test_stopping_ends_all_runs_early(cluster: Processes) -> None:
    is_stopped = threading.Event()
    timer = threading.Timer(4, is_stopped.set)
    timer.start()
    answers = tune_hosts(
        "zoo:bert_tiny", cluster=cluster.address, budget="600s", until_proven=True,
        targets=["onnxruntime", "native"], should_stop=is_stopped.is_set,
    )  # fmt: skip
    timer.join()
    assert len(answers) == 2
    for answer in answers:
        # The best so far, or an error where the stop came before anything was measured.
        assert answer.result["stopped"] if answer.error is None else isinstance(answer.error, StoppedError)


def test_the_leads_worker_is_killed_and_another_one_leads(tmp_path: Path) -> None:
    with dask_processes(tmp_path) as processes:
        victim = processes.start_worker()
        processes.expect_workers(1)
        answers: list[HostAnswer] = []

        def run() -> None:
            answers.extend(tune_hosts("zoo:mnist", cluster=processes.address, **{**OPTIONS, "budget": "4s"}))

        thread = threading.Thread(target=run)
        thread.start()
        # The lead has begun once its worker has a folder for the run.
        assert until(lambda: list((tmp_path / "workers").glob("*/*/intarsia-run-*")) != [])
        victim.kill()
        processes.start_worker()
        thread.join(120)
        assert not thread.is_alive()
    (answer,) = answers
    assert answer.error is None
    assert answer.chosen["toolchain"] == "onnxruntime"


def test_options_that_are_refused(cluster: Processes) -> None:
    for options, message in (
        ({"plan": Path("x")}, "tune_hosts has no option plan"),
        ({"bugdet": 1}, "tune_hosts has no option bugdet"),
        ({"metric": lambda *_: 1.0}, "metric cannot be sent to other machines"),
    ):
        with pytest.raises(UsageError, match=message):
            tune_hosts("zoo:mnist", cluster=cluster.address, **options)
