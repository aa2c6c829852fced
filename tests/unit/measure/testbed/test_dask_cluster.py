"""A real scheduler and workers: lost work is done elsewhere, timings never overlap, misfits get nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import pytest
from tests.unit.measure.testbed import other_workers, recorded_runs
from tests.unit.measure.testbed.candidates import LIMITS, PRELOAD, candidate, expect_fates, one_of_each
from tests.unit.measure.testbed.dask_processes import Processes, dask_processes, keepers
from tests.unit.measure.testbed.other_workers import UNLIKE
from tests.unit.measure.testbed.recorded_runs import RECORD, spans
from tests.unit.measure.worker_pool.live_processes import is_alive, until

from intarsia.measure.database import Database
from intarsia.measure.measure_progress import MeasureProgress
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.race.result import RaceEnd
from intarsia.measure.testbed.dask_cluster import connect
from intarsia.measure.testbed.remote import RemoteTestbed
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.toolchain.this_host import this_host

pytestmark = pytest.mark.processes

GONE = "all workers of the cluster are gone: waiting 60 s for one to come back"


def connected(cluster: Processes, patience_s: float = 60.0, notes: list[str] | None = None) -> RemoteTestbed:
    note = (lambda text: None) if notes is None else notes.append
    modules = (*PRELOAD, recorded_runs.__name__)
    return connect(
        cluster.address,
        this_host(),
        limits=LIMITS,
        preload=modules,
        on_note=note,
        patience_s=patience_s,
        timeout_s=20,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dask")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Processes]:
    """Two workers that nobody kills."""
    with dask_processes(folder) as processes:
        for _ in range(2):
            processes.start_worker(environment={RECORD: str(folder / "record")})
        processes.expect_workers(2)
        yield processes


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Processes]:
    """A scheduler without workers."""
    with dask_processes(tmp_path) as processes:
        yield processes


def test_candidates_end_as_on_this_machine(cluster: Processes) -> None:
    with connected(cluster) as testbed:
        expect_fates(list(testbed.measure(one_of_each())))


def test_timings_never_overlap_and_nothing_is_built_beside_them(cluster: Processes, folder: Path) -> None:
    (folder / "record").unlink(missing_ok=True)
    with connected(cluster) as testbed:
        assert testbed.width == 32
        measured = list(testbed.measure([candidate(trace=number) for number in range(14)]))
    assert [each.outcome.error for each in measured] == [MeasureError.OK] * 14
    found = spans(folder / "record")
    runs = sorted((span for span in found if span.what == "run"), key=lambda span: span.begin)
    builds = [span for span in found if span.what == "build"]
    assert len(runs) == len(builds) == 14
    assert len({span.pid for span in runs}) == 2  # both workers have had some
    assert all(one.end <= next_one.begin for one, next_one in pairwise(runs))
    beside = [(run, each) for run in runs for each in builds if each.begin < run.end and run.begin < each.end]
    assert beside == []


class TestRace:
    TWINS: ClassVar = {"a": candidate(trace=1), "b": candidate(trace=2)}

    def test_it_is_held_by_one_worker(self, cluster: Processes) -> None:
        racers = {**self.TWINS, "c": candidate("test segfaults")}
        with connected(cluster) as testbed:
            raced = testbed.race(racers, RaceLimits(RacePolicy(max_rounds=8)))
        assert {each.name for each in raced.ranking} == {"a", "b"}
        assert raced.failures["c"].error is MeasureError.CRASH

    def test_a_wish_to_stop_reaches_it(self, cluster: Processes) -> None:
        policy = RacePolicy(max_rounds=1_000_000, max_repeats=10_000_000, margin=0.0)
        told: list[float] = []

        def note(rounds: int, seconds: float) -> None:
            told.append(seconds)

        with connected(cluster) as testbed:
            limits = RaceLimits(policy, should_stop=lambda: len(told) > 5, on_turn=note)
            raced = testbed.race(self.TWINS, limits)
        assert raced.result is not None
        assert raced.result.end in {RaceEnd.STOPPED, RaceEnd.ONE_LEFT}  # chance may decide it before


def test_workers_are_left_without_processes_and_files(cluster: Processes, folder: Path) -> None:
    with connected(cluster) as testbed:
        running = testbed.measure([candidate(), candidate("test loops"), candidate(trace=1)])
        next(running)
        assert any(keepers(pid) for pid in cluster.worker_pids())
        running.close()
    assert until(lambda: not any(keepers(pid) for pid in cluster.worker_pids()))
    assert until(lambda: not list((folder / "workers").glob("*/*/intarsia-run-*")))


def test_a_workload_is_brought_to_every_worker_and_again_where_it_is_lost(
    cluster: Processes, folder: Path
) -> None:
    def unpacked() -> list[Path]:
        return list((folder / "workers").glob("*/*/intarsia-run-*/*-0"))

    assert until(lambda: unpacked() == [])  # those of tests before
    with connected(cluster) as testbed:
        measured = list(testbed.measure([candidate(trace=number) for number in range(12)]))
        assert len(unpacked()) == 2
        for path in unpacked():
            shutil.rmtree(path)
        measured += testbed.measure([candidate(trace=number) for number in range(12, 24)])
        assert len(unpacked()) == 2
        for path in unpacked():
            shutil.rmtree(path)
        raced = testbed.race(TestRace.TWINS, RaceLimits(RacePolicy(max_rounds=8)))
    assert sorted(int(item.input.candidate.text) for item in measured) == list(range(24))
    assert {item.outcome.error for item in measured} == {MeasureError.OK}
    assert {item.name for item in raced.ranking} == {"a", "b"}


def test_a_killed_workers_candidates_go_to_the_other(scheduler: Processes, tmp_path: Path) -> None:
    victim = scheduler.start_worker()
    scheduler.start_worker()
    scheduler.expect_workers(2)
    below: list[int] = []

    def kill(progress: MeasureProgress) -> None:
        if progress.done == 5:
            below.extend(keepers(victim.pid))
            victim.kill()

    inputs = [candidate(trace=number) for number in range(24)]
    with connected(scheduler) as testbed, Database.open(tmp_path / "measurements.db") as database:
        results = Measurer(testbed, database, on_progress=kill).measure(inputs)
        assert [result is not None and result.is_ok for result in results] == [True] * 24
        assert database.statistics().records == 24
        known: list[int] = []
        Measurer(testbed, database, on_progress=lambda each: known.append(each.stored)).measure(inputs)
        assert known == [24]
    assert victim.wait() == -signal.SIGKILL
    assert below
    assert until(lambda: not any(map(is_alive, below)))


def test_all_workers_gone_and_one_comes_back(scheduler: Processes) -> None:
    first = scheduler.start_worker()
    scheduler.expect_workers(1)
    notes: list[str] = []
    with connected(scheduler, notes=notes) as testbed:
        running = testbed.measure([candidate(trace=number) for number in range(6)])
        measured = [next(running)]
        first.kill()
        threading.Thread(target=lambda: until(lambda: GONE in notes) and scheduler.start_worker()).start()
        measured += running
    assert sorted(each.input.candidate.text for each in measured) == [str(number) for number in range(6)]
    assert {each.outcome.error for each in measured} == {MeasureError.OK}
    assert notes.count(GONE) == 1  # others may be of the lock of the host


def test_a_nanny_starts_a_killed_worker_again_and_ends_it_with_all_it_has(scheduler: Processes) -> None:
    nanny = scheduler.start_worker("--nanny")
    scheduler.expect_workers(1)
    (first,) = scheduler.pids_told()
    with connected(scheduler) as testbed:
        running = testbed.measure([candidate(trace=number) for number in range(6)])
        measured = [next(running)]
        os.kill(first, signal.SIGKILL)
        measured += running
        assert [each.outcome.error for each in measured] == [MeasureError.OK] * 6
        (second,) = scheduler.pids_told()
        below = keepers(second)
        assert second != first
        assert below
        nanny.terminate()
        assert nanny.wait(60) is not None
        assert until(lambda: not any(map(is_alive, (second, *below))))


def test_all_workers_gone_for_good(scheduler: Processes) -> None:
    only = scheduler.start_worker()
    scheduler.expect_workers(1)
    with connected(scheduler, patience_s=1.5) as testbed:
        running = testbed.measure([candidate(), candidate("test loops")])
        next(running)
        only.kill()
        with pytest.raises(ExecutionError) as caught:
            list(running)
    assert str(caught.value) == (
        f"all workers of the cluster at {scheduler.address} are gone, and none has come back in 1.5 s\n"
        f"help: start one (dask worker {scheduler.address}) and run the same command again: "
        "what has been measured is kept"
    )


def test_the_scheduler_is_lost(scheduler: Processes) -> None:
    scheduler.start_worker()
    scheduler.expect_workers(1)
    with connected(scheduler, patience_s=1.5) as testbed:
        running = testbed.measure([candidate(), candidate("test loops")])
        next(running)
        scheduler.kill_scheduler()
        with pytest.raises(ExecutionError) as caught:
            list(running)
    assert str(caught.value) == (
        f"the connection to the scheduler at {scheduler.address} is lost, and has not come back in 1.5 s: "
        f"no Dask scheduler answers at {scheduler.address} within 20 s\n"
        "help: see that it runs and has workers, and run the same command again: "
        "what has been measured is kept"
    )


def restart(scheduler: Processes) -> None:
    scheduler.kill_scheduler()
    scheduler.restart_scheduler()
    scheduler.start_worker()


def test_a_scheduler_that_is_restarted_gets_what_has_no_result_yet(
    scheduler: Processes, tmp_path: Path
) -> None:
    scheduler.start_worker()
    scheduler.expect_workers(1)
    notes: list[str] = []
    counts: list[int] = []

    def note_progress(progress: MeasureProgress) -> None:
        counts.append(progress.done)
        if progress.done == 3:
            restart(scheduler)

    inputs = [candidate(trace=number) for number in range(8)]
    with (
        connected(scheduler, notes=notes) as testbed,
        Database.open(tmp_path / "measurements.db") as database,
    ):
        results = Measurer(testbed, database, on_progress=note_progress).measure(inputs)
        records = database.records_of(inputs[0].workload.digest)
    assert [result is not None and result.is_ok for result in results] == [True] * 8
    assert [len(record.measurements) for record in records] == [1] * 8
    assert counts == list(range(9))
    lost = f"the connection to the scheduler at {scheduler.address} is lost: waiting 60 s for it to come back"
    assert notes.count(lost) == 1


def test_a_race_is_held_again_after_a_restart(scheduler: Processes) -> None:
    scheduler.start_worker()
    scheduler.expect_workers(1)
    turns: list[float] = []

    def note(rounds: int, seconds: float) -> None:
        turns.append(seconds)
        if len(turns) == 3:
            restart(scheduler)

    policy = RacePolicy(max_rounds=1_000_000, max_repeats=10_000_000, margin=0.0)
    with connected(scheduler) as testbed:
        limits = RaceLimits(policy, seconds=5.0, on_turn=note)
        raced = testbed.race(TestRace.TWINS, limits)
    assert len(turns) >= 3
    assert {result.name for result in raced.ranking} == {"a", "b"}


def test_what_ends_one_worker_after_the_other_has_crashed(tmp_path: Path) -> None:
    """Only from outside can that happen, because candidates do not run in the worker's process."""
    with dask_processes(tmp_path, {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}) as cluster:
        workers = [cluster.start_worker() for _ in range(3)]
        cluster.expect_workers(3)
        with connected(cluster) as testbed:
            threading.Thread(target=kill_two_of_those_at_work, args=(workers,)).start()
            (measured,) = testbed.measure([candidate("test loops")])
        assert measured.outcome.error is MeasureError.CRASH
        assert "ended, 2 times in a row" in measured.outcome.message


def kill_two_of_those_at_work(workers: list[subprocess.Popen[bytes]]) -> None:
    for _ in range(2):
        assert until(lambda: any(keepers(worker.pid) for worker in workers))
        victim = next(worker for worker in workers if keepers(worker.pid))
        workers.remove(victim)
        victim.kill()


class TestRefused:
    """Exact words, for those who set up a cluster."""

    def message(self, cluster: Processes, address: str | None = None, timeout_s: float = 20.0) -> str:
        with pytest.raises(UsageError) as caught:
            connect(address or cluster.address, this_host(), timeout_s=timeout_s)
        return str(caught.value)

    def unlike(self, scheduler: Processes, how: str) -> str:
        """The address of a worker that differs in some way."""
        scheduler.start_worker("--preload", str(other_workers.__file__), environment={UNLIKE: how})
        (address,) = scheduler.expect_workers(1)
        return address

    def test_another_machine(self, scheduler: Processes) -> None:
        worker = self.unlike(scheduler, "another machine")
        assert self.message(scheduler) == (
            f"no worker of the cluster at {scheduler.address} is a machine such as this one: "
            f"{worker} (usable cores: {this_host().cores} here, 777 there)\n"
            "help: costs of another machine are never used: start a worker on this one or one like it with: "
            f"dask worker {scheduler.address}"
        )

    def test_another_version(self, scheduler: Processes) -> None:
        worker = self.unlike(scheduler, "another version")
        assert self.message(scheduler) == (
            f"workers of the cluster have another version of Intarsia than 0.1.0: {worker} has 0.0.7\n"
            "help: install the same version everywhere, and start the workers again"
        )

    def test_no_intarsia(self, scheduler: Processes) -> None:
        """Such a worker is of no use; beside one that is, it does not matter, and it can still be started."""
        worker = self.unlike(scheduler, "no Intarsia")
        assert f"{worker} (it cannot run Intarsia: ModuleNotFoundError(" in self.message(scheduler)
        scheduler.start_worker()
        scheduler.expect_workers(2)
        with connected(scheduler) as testbed:
            scheduler.start_worker(
                "--preload", str(other_workers.__file__), environment={UNLIKE: "no Intarsia"}
            )
            scheduler.expect_workers(3)
            measured = list(testbed.measure([candidate(trace=number) for number in range(4)]))
        assert {each.outcome.error for each in measured} == {MeasureError.OK}

    def test_no_workers(self, scheduler: Processes) -> None:
        assert self.message(scheduler, timeout_s=1.0) == (
            f"the cluster at {scheduler.address} has no workers\n"
            f"help: start one on a machine such as this one: dask worker {scheduler.address}"
        )

    def test_nobody_answers(self, cluster: Processes) -> None:
        assert self.message(cluster, "tcp://127.0.0.1:1", 1.0) == (
            "no Dask scheduler answers at tcp://127.0.0.1:1 within 1 s\n"
            'help: start one with "dask scheduler", which prints its address, and workers with '
            '"dask worker ADDRESS"; or see that no firewall is between'
        )

    @pytest.mark.parametrize("address", ["nonsense://x", "tcp://a:b:c"])
    def test_no_address(self, cluster: Processes, address: str) -> None:
        text = self.message(cluster, address, 1.0)
        assert text.startswith(f'"{address}" is not the address of a scheduler: ')
        assert text.endswith('\nhelp: such as "tcp://10.0.0.1:8786"')

    def test_the_extra_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(UsageError) as caught:
            connect("tcp://127.0.0.1:1", this_host())
        assert str(caught.value).startswith("a cluster needs the package distributed: ")
        assert str(caught.value).endswith("\nhelp: pip install 'intarsia[distributed]'")
