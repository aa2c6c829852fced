"""Candidates measured by threads and by processes of an executor end as they do on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.measure.testbed.candidates import (
    LIMITS,
    PRELOAD,
    WORKLOAD,
    candidate,
    expect_fates,
    one_of_each,
    program,
)
from tests.unit.measure.worker_pool.live_processes import is_alive, own_descendants, until

from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.race.result import RaceEnd
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.testbed.remote import RemoteTestbed, _most_submitted
from intarsia.measure.worker_pool.process_tree import children
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.toolchain.this_host import this_host

pytestmark = pytest.mark.processes


def opened(executor: Executor, workers: int = 2) -> RemoteTestbed:
    return RemoteTestbed.open(executor, this_host(), workers, limits=LIMITS, preload=PRELOAD)


def processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module")
def threads() -> Iterator[RemoteTestbed]:
    with ThreadPoolExecutor(2) as executor, opened(executor) as testbed:
        yield testbed


@pytest.mark.parametrize(
    ("left", "lanes", "most"), [(64, 4, 8), (5, 4, 8), (4, 4, 4), (1, 4, 4), (1, 1, 1), (9, 1, 2)]
)
def test_the_last_candidates_wait_for_a_free_lane(left: int, lanes: int, most: int) -> None:
    assert _most_submitted(left, lanes) == most


def test_on_this_machine() -> None:
    with LocalTestbed.open(this_host(), workers=2, limits=LIMITS, preload=PRELOAD) as testbed:
        expect_fates(list(testbed.measure(one_of_each())))


def test_in_threads(threads: RemoteTestbed) -> None:
    expect_fates(list(threads.measure(one_of_each())))


def test_in_processes_which_are_left_without_children() -> None:
    with processes() as executor, opened(executor) as testbed:
        expect_fates(list(testbed.measure(one_of_each())))
        pids = {executor.submit(os.getpid).result() for _ in range(8)}
        below = {child for pid in pids for child in children(pid)}
        assert below
    assert until(lambda: not any(map(is_alive, below)))


def test_in_forked_processes() -> None:
    """They have forgotten the station of the process that they are forks of."""
    with ThreadPoolExecutor(1) as threads, opened(threads) as testbed:
        assert next(iter(testbed.measure([candidate()]))).outcome.error is MeasureError.OK
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(1, mp_context=context) as executor, opened(executor, 1) as other:
            (measured,) = other.measure([candidate()])
            assert measured.outcome.error is MeasureError.OK


def test_special_inputs_and_several_workloads(threads: RemoteTestbed) -> None:
    """The wrong program is right by chance on the special inputs; those that vary them show it."""
    zeros = Workload(program(), special_inputs={"x": np.full((2, 3), -9, np.float32)})
    fates = {"test right": MeasureError.OK, "test wrong": MeasureError.WRONG_ANSWER}
    inputs = [candidate(kind, workload=work) for work in (WORKLOAD, zeros) for kind in fates]
    outcomes = {
        (each.input.workload, each.input.candidate.kind): each.outcome for each in threads.measure(inputs)
    }
    assert len(outcomes) == len(inputs)
    for (_, kind), outcome in outcomes.items():
        assert outcome.error is fates[kind]
    assert "large inputs" in outcomes[zeros, "test wrong"].message


def test_the_measurer_keeps_results_and_measures_nothing_twice(
    threads: RemoteTestbed, tmp_path: Path
) -> None:
    inputs = [candidate(trace=number) for number in range(10)]
    with Database.open(tmp_path / "measurements.db") as database:
        measurer = Measurer(threads, database)
        first = measurer.measure(inputs, trials=9)
        assert [result is not None for result in first].count(True) == 9
        seen: list[tuple[int, int]] = []
        measurer.on_progress = lambda progress: seen.append((progress.done, progress.stored))
        assert all(result is not None and result.is_ok for result in measurer.measure(inputs))
        assert seen == [(9, 9), (10, 9)]


def test_width_is_a_few_times_the_workers(threads: RemoteTestbed) -> None:
    assert threads.width == 32
    assert threads.host == this_host()
    assert threads.artifact(candidate()) is None


class TestRace:
    RACERS = {name: candidate(trace=number) for number, name in enumerate("ab")} | {
        "c": candidate("test raises")
    }

    def test_candidates_are_timed_in_turns_and_failures_told(self, threads: RemoteTestbed) -> None:
        policy = RacePolicy(max_rounds=8, margin=0.0)
        raced = threads.race(self.RACERS, RaceLimits(policy))
        assert raced.result is not None
        assert {each.name for each in raced.ranking} == {"a", "b"}
        assert raced.failures["c"].error is MeasureError.INSTANTIATION
        assert len(raced.result.candidate("a").samples) >= 3

    def test_a_wish_to_stop_reaches_it(self, threads: RemoteTestbed) -> None:
        policy = RacePolicy(max_rounds=1_000_000, max_repeats=10_000_000, margin=0.0)
        told: list[float] = []
        limits = RaceLimits(
            policy,
            should_stop=lambda: len(told) > 5,
            on_turn=lambda rounds, seconds: told.append(seconds),
        )
        twins = {"a": candidate(trace=1), "b": candidate(trace=2)}
        raced = threads.race(twins, limits)
        assert raced.result is not None
        assert raced.result.end in {RaceEnd.STOPPED, RaceEnd.ONE_LEFT}  # chance may decide it before
        assert told == sorted(told)
        assert raced.ranking

    def test_of_one_workload_only(self, threads: RemoteTestbed) -> None:
        other = Workload(program(), special_inputs={"x": np.zeros((2, 3), np.float32)})
        with pytest.raises(ValueError, match="candidates of one workload"):
            threads.race({"a": candidate(), "b": candidate(workload=other)}, RaceLimits())
        with pytest.raises(ValueError, match="candidates of one workload"):
            threads.race({}, RaceLimits())


class Holding(Executor):
    """Runs nothing, and does something to the first future when a number of tasks has come."""

    def __init__(self, count: int, act: Callable[[Future[object]], object]) -> None:
        self.futures: list[Future[object]] = []
        self.count, self.act = count, act

    def submit(self, fn: object, /, *args: object, **kwargs: object) -> Future[object]:  # type: ignore[override]  # whatever the function gives
        self.futures.append(Future())
        if len(self.futures) == self.count:
            threading.Timer(0.1, self.act, self.futures[:1]).start()
        return self.futures[-1]


def test_closing_the_iterator_cancels_what_has_not_begun() -> None:
    executor = Holding(4, lambda first: first.set_exception(UsageError("no")))
    with opened(executor) as testbed:
        with pytest.raises(UsageError, match="no"):
            next(testbed.measure([candidate(trace=number) for number in range(6)]))
        assert [future.cancelled() for future in executor.futures] == [False, True, True, True]


def test_a_dropped_task_is_an_error_and_no_result() -> None:
    executor = Holding(1, Future.cancel)
    with opened(executor) as testbed, pytest.raises(ExecutionError, match="dropped a candidate"):
        next(testbed.measure([candidate()]))


def test_a_broken_executor_is_an_error_and_no_result() -> None:
    with processes() as executor, opened(executor) as testbed:
        (pid,) = {executor.submit(os.getpid).result()}
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ExecutionError, match=r"lost a candidate.*BrokenProcessPool"):
            list(testbed.measure([candidate(trace=number) for number in range(3)]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": "0.0.7"}, "the executor's processes have Intarsia .*, this one 0.0.7"),
        ({"host": replace(this_host(), cores=777)}, "another kind of machine: usable cores: 777 here"),
    ],
)
def test_processes_that_do_not_fit_refuse(changes: dict[str, object], message: str) -> None:
    with ThreadPoolExecutor(1) as executor, opened(executor) as testbed:
        testbed.settings = replace(testbed.settings, **changes)  # type: ignore[arg-type]  # of those fields
        with pytest.raises(UsageError, match=message):
            list(testbed.measure([candidate()]))


def test_closing_ends_processes_and_removes_files(tmp_path: Path) -> None:
    before = own_descendants()
    with ThreadPoolExecutor(1) as executor:
        testbed = RemoteTestbed.open(
            executor, this_host(), 1, limits=LIMITS, preload=PRELOAD, parent=tmp_path
        )
        running = testbed.measure([candidate(), candidate("test loops")])
        next(running)
        time.sleep(0.3)  # the other one loops now
        assert own_descendants() - before
        running.close()
        testbed.close()
        assert until(lambda: own_descendants() <= before)
    assert list(tmp_path.iterdir()) == []
