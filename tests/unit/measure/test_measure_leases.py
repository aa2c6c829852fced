"""Several tuners on one database, SQLite and PostgreSQL: nothing is measured twice, nothing is left out."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Generator, Sequence

import pytest
from tests.unit.measure.database.conftest import new_place, place, server
from tests.unit.measure.quick_testbed import HOST, as_input
from tests.unit.measure.worker_pool.live_processes import until

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.database import Database
from intarsia.measure.lease_owner import has_ended, new_owner
from intarsia.measure.measure_input import Candidate, MeasureInput
from intarsia.measure.measure_leases import MeasureLeases
from intarsia.measure.measurer import Measurer
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.race.racing import Race
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import Measured
from intarsia.measure.testbed.local import LocalTestbed

__all__ = ["new_place", "place", "server"]

INPUTS = [as_input(Candidate("planned", number)) for number in range(30)]


class FakeTestbed(LocalTestbed):
    """Measures nothing: waits a little and notes what it was given."""

    def __init__(self, measured: list[str], fail_at: int | None = None) -> None:  # no folder, no workers
        self.host, self.measured, self.fail_at = HOST, measured, fail_at

    @property
    def width(self) -> int:
        return 4

    @property
    def on_wait(self) -> None:
        return None

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        for item in inputs:
            if self.fail_at is not None and len(self.measured) >= self.fail_at:
                raise KeyboardInterrupt
            threading.Event().wait(0.01)
            self.measured.append(item.candidate.text)
            yield Measured(item, Outcome(costs=(1.0,)), 0.01)

    def race(self, racers: object, limits: RaceLimits) -> Raced:
        assert isinstance(racers, dict)
        self.measured.append("race")
        threading.Event().wait(0.2)
        race = Race(tuple(racers), limits.policy)
        while (name := race.next_candidate()) is not None:
            race.record(name, 1.0 + list(racers).index(name))
        return Raced(race.result(), {})


def never_pause(seconds: float) -> None:
    pytest.fail("it waits for leases that are free")


def run_together(*functions: object) -> None:
    threads = [threading.Thread(target=function) for function in functions]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("enough", [1, 2])
def test_tuners_at_the_same_time_measure_nothing_twice(place: str, enough: int) -> None:
    measured: list[str] = []
    outcomes: list[int] = []

    def tune(order: int) -> None:
        with Database.open(place) as database:
            measurer = Measurer(FakeTestbed(measured), database)
            for count in range(1, enough + 1):
                results = measurer.measure(INPUTS[::order], enough=count)
            outcomes.append(sum(result is not None and result.is_ok for result in results))

    run_together(lambda: tune(1), lambda: tune(-1), lambda: tune(1))
    assert outcomes == [30] * 3
    assert Counter(measured) == {item.candidate.text: enough for item in INPUTS}


def test_tuners_at_the_same_time_hold_a_race_once(place: str) -> None:
    measured: list[str] = []
    winners: list[object] = []
    limits = RaceLimits(RacePolicy(max_rounds=5))

    def race() -> None:
        with Database.open(place) as database:
            racers = {"a": INPUTS[0], "b": INPUTS[1]}
            raced = Measurer(FakeTestbed(measured), database).race(racers, limits)
            winners.append(raced.result and raced.result.winner)

    run_together(race, race)
    assert measured == ["race"]
    assert winners == ["a", "a"]


def test_a_tuner_that_is_stopped_leaves_the_rest_to_others_at_once(place: str) -> None:
    measured: list[str] = []
    with Database.open(place) as database:
        with pytest.raises(KeyboardInterrupt):
            Measurer(FakeTestbed(measured, fail_at=6), database).measure(INPUTS)
        leases = MeasureLeases(database, HOST.digest, pause=never_pause)
        assert len(list(batches(leases, INPUTS[6:]))) == 1


def batches(leases: MeasureLeases, inputs: Sequence[MeasureInput]) -> Generator[list[MeasureInput]]:
    return leases.batches(inputs, lambda waited: len(inputs), lambda item: False, FakeTestbed([]))


KILLED = """
import os, sys
from intarsia.measure.database import Database
from intarsia.measure.lease_owner import new_owner

owner = new_owner()
with Database.open(sys.argv[1]) as database:
    database.take_leases(sys.argv[2:], owner, 3600.0)
    print(owner, flush=True)
    os.kill(os.getpid(), 9)
"""


def test_leases_of_a_killed_process_of_this_machine_are_free(place: str) -> None:
    with Database.open(place) as database:
        leases = MeasureLeases(database, HOST.digest, pause=never_pause)
        keys = [leases.key(item) for item in INPUTS]
        done = subprocess.run(
            [sys.executable, "-c", KILLED, place, *keys], stdout=subprocess.PIPE, check=False
        )
        owner = done.stdout.decode().strip()
        assert set(database.lease_owners(keys).values()) == {owner}
        assert has_ended(owner)
        with leases.holding(INPUTS[:2]):
            pass
        assert next(batches(leases, INPUTS)) == INPUTS


def test_leases_of_others_are_waited_for_until_they_end(place: str) -> None:
    """Those of a machine that lost its power end by time; those of living ones do not."""
    waits: list[float] = []
    with Database.open(place) as database:
        holder = MeasureLeases(database, HOST.digest)
        with holder.holding(INPUTS[:1]):
            leases = MeasureLeases(database, HOST.digest, pause=waits.append)
            most = [2, 2, 2, 0]
            found = list(
                leases.batches(INPUTS[:3], lambda waited: most.pop(0), lambda item: False, FakeTestbed([]))
            )
        assert found == [INPUTS[1:2], INPUTS[2:3]]
        assert len(waits) == 1
        key = holder.key(INPUTS[0])
        assert database.take_leases([key], "other machine", -1.0) == {key}
        assert database.take_leases([key], "third machine", 60.0) == {key}
        assert database.take_leases([key], "other machine", 60.0) == frozenset()
        database.end_leases([key], "other machine")
        assert database.lease_owners([key]) == {key: "third machine"}


def test_held_leases_are_extended(place: str) -> None:
    with Database.open(place) as database:
        leases = MeasureLeases(database, HOST.digest, seconds=2.0)
        with leases.holding(INPUTS[:1]):
            threading.Event().wait(4.0)
            assert database.take_leases([leases.key(INPUTS[0])], "other", 1.0) == frozenset()
        assert database.take_leases([leases.key(INPUTS[0])], "other", 1.0)


def test_owners_of_other_machines_are_taken_for_alive() -> None:
    owner = new_owner()
    assert not has_ended(owner)
    boot, namespace, pid, start, rest = owner.split("/")
    assert pid == str(os.getpid())
    assert has_ended("/".join((boot, namespace, pid, str(int(start) + 1), rest)))
    assert not has_ended("/".join(("another boot", namespace, pid, "1", rest)))
    assert not has_ended("/".join(("", "", pid, "1", rest)))
    assert not has_ended("text")


def test_a_killed_process_that_its_parent_has_not_looked_at_has_ended() -> None:
    command = [sys.executable, "-c", "from intarsia.measure import lease_owner as o; print(o.new_owner())"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    owner = process.stdout.read().strip()  # the end of the output comes with that of the process
    assert until(lambda: has_ended(owner))
    process.wait()
    assert has_ended(owner)


def test_without_a_database_all_is_measured() -> None:
    leases = MeasureLeases(None, HOST.digest)
    found = list(leases.batches(INPUTS, lambda waited: 8, lambda item: False, FakeTestbed([])))
    assert [len(batch) for batch in found] == [8, 8, 8, 6]
    assert [item for batch in found for item in batch] == INPUTS
