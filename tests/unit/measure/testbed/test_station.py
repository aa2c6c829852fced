"""Sessions of a process: begun when they are wanted, ended when they are over or abandoned."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from intarsia.measure.testbed.station import ABANDONED_S, Station, StationFacts, facts, stop_race
from intarsia.measure.testbed.station_session import StationSettings
from intarsia.measure.worker_pool import TaskStoppedError
from intarsia.support.version import VERSION
from intarsia.toolchain.this_host import this_host

SETTINGS = StationSettings("one", this_host())
OTHER = replace(SETTINGS, session="other")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def station(tmp_path: Path, clock: Clock) -> Iterator[Station]:
    station = Station(clock)
    station.parent = tmp_path
    yield station
    station.close()
    assert list(tmp_path.iterdir()) == []


def test_facts_name_the_resource() -> None:
    here = facts()
    assert here == StationFacts(VERSION, this_host())
    assert here.resource == f"intarsia-{VERSION}-host-{this_host().digest[:16]}"
    assert pickle.loads(pickle.dumps(here)) == here
    assert replace(here, host=replace(this_host(), cores=777)).resource != here.resource


def test_one_session_of_a_name(station: Station) -> None:
    with ThreadPoolExecutor(8) as executor:
        found = set(executor.map(lambda _: station.session(SETTINGS), range(32)))
    assert found == {station.running("one")}
    assert station.session(OTHER) not in found


@pytest.mark.slow
def test_threads_at_the_same_time_have_lanes_of_their_own_which_are_used_again(station: Station) -> None:
    session = station.session(SETTINGS)
    together = threading.Barrier(2)

    def use(_: int) -> int:
        with session.lane() as lane:
            together.wait(30)
            return id(lane)

    with ThreadPoolExecutor(2) as executor:
        first, second = set(executor.map(use, range(2))), set(executor.map(use, range(2)))
    assert len(first) == 2
    assert first == second


@pytest.mark.slow
def test_a_lane_in_which_something_went_wrong_is_not_used_again(station: Station) -> None:
    session = station.session(SETTINGS)
    with pytest.raises(ZeroDivisionError), session.lane() as spoilt:
        _ = 1 // 0
    assert not spoilt.folder.path.exists()
    with session.lane() as lane:
        assert lane is not spoilt


@pytest.mark.slow
def test_a_session_that_is_over_does_not_begin_again(station: Station) -> None:
    session = station.session(SETTINGS)
    with session.lane() as lane:
        station.retire("one")
        assert not lane.folder.path.exists()
    with pytest.raises(TaskStoppedError, match="is over"):
        station.session(SETTINGS)
    with pytest.raises(TaskStoppedError, match="is over"), session.lane():
        pass
    assert station.running("one") is None


def test_abandoned_sessions_are_closed_when_another_comes(station: Station, clock: Clock) -> None:
    first = station.session(SETTINGS)
    clock.now = ABANDONED_S - 1
    station.session(OTHER)
    assert station.running("one") is first
    clock.now = ABANDONED_S + 1
    station.session(OTHER)
    assert station.running("one") is None
    assert station.session(SETTINGS) is not first  # it was not over, only quiet


@pytest.mark.slow
def test_a_session_at_work_is_not_abandoned(station: Station, clock: Clock) -> None:
    first = station.session(SETTINGS)
    with first.lane():
        clock.now = 10 * ABANDONED_S
        station.session(OTHER)
        assert station.running("one") is first


def test_a_race_that_is_not_held_here_is_not_stopped_here() -> None:
    stop_race("no such session", "workload", "race")
