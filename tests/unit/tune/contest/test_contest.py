"""Who wins a contest: the best of the race, but no mix that is not shown to be faster than one toolchain."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

import pytest
from tests.collage_programs import program

from intarsia.collage.placement.placement import Partition, Placement
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.race.racing import race
from intarsia.measure.race.result import Dropped, DropReason, RacedCandidate, RaceEnd, RaceResult
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import LocalTestbed, Measured
from intarsia.measure.worker_calls import AnyInput
from intarsia.support.errors import VerificationError
from intarsia.target import Host, Target
from intarsia.tune.contest.candidate_record import Status
from intarsia.tune.contest.contest import EXACT, FINAL, Contest
from intarsia.tune.contest.entrant import Entrant

WORKLOAD = Workload(program("def @main(%x: T) { Exp(Softmax(%x)) }"), "planted")
DROPPED = Dropped(8, DropReason.SLOWER, 8, 8)


class PlannedTestbed(LocalTestbed):
    """Nothing is built or run: everybody takes a second alone, and the race is as it was planned."""

    def __init__(
        self,
        samples: Mapping[str, Sequence[float]],
        dropped: Sequence[str],
        by_size: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    ) -> None:
        self.by_size = by_size or {}
        self.host = Host.detect()
        self.policies: list[RacePolicy] = []
        self.planned = tuple(
            RacedCandidate(name, tuple(times), DROPPED if name in dropped else None)
            for name, times in samples.items()
        )

    @property
    def width(self) -> int:
        return 16

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        for item in inputs:
            yield Measured(item, Outcome(MeasureError.OK, "", (1.0,) * 6), 1.0)

    def race(self, racers: Mapping[str, AnyInput], limits: RaceLimits) -> Raced:
        self.policies.append(limits.policy)
        entered = tuple(each for each in self.planned if each.name in racers)
        rounds = max(len(each.samples) for each in entered)
        return Raced(RaceResult(entered[0].name, RaceEnd.SECONDS_SPENT, entered, rounds), {}, self.by_size)


def mix(first: str, second: str) -> MeasureInput:
    placement = Placement((Partition("main", first, (1,), "Softmax"), Partition("main", second, (2,), "Exp")))
    return MeasureInput(WORKLOAD, Target.for_toolchain("reference"), placement.candidate)


ENTRANTS = {
    "one": MeasureInput(WORKLOAD, Target.for_toolchain("one"), WHOLE),
    "two": MeasureInput(WORKLOAD, Target.for_toolchain("two"), WHOLE),
    "mix": mix("cpu -toolchain=one", "cpu -toolchain=two"),
    "other mix": mix("cpu -toolchain=two", "cpu -toolchain=one"),
    "searched": MeasureInput(WORKLOAD, Target("cpu -toolchain=one -schedules=0123456789abcdef"), WHOLE),
}


def winner(
    samples: Mapping[str, Sequence[float]],
    dropped: Sequence[str] = (),
    by_size: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
) -> str:
    contest = Contest(Measurer(PlannedTestbed(samples, dropped, by_size)), lambda: False)
    contest.enter([Entrant(name, ENTRANTS[name]) for name in samples])
    found = contest.decide(1.0, 0).name
    assert [record.name for record in contest.records() if record.chosen] == [found]
    return found


NOISE = (1.0, 1.3, 0.9, 1.2, 1.1, 1.0, 0.8, 1.4, 1.0, 1.1)
STEADY = (1.04,) * 10


@pytest.mark.parametrize(
    ("samples", "dropped", "expected"),
    [
        ({"one": STEADY, "mix": (0.9,) * 10}, (), "mix"),
        ({"one": STEADY, "mix": (1.03, 1.05) * 5}, (), "one"),
        ({"one": NOISE, "mix": NOISE}, (), "one"),
        ({"one": (1.0,) * 3, "mix": (0.9,) * 3}, (), "one"),
        ({"one": (1.2,) * 3, "mix": (0.9,) * 10}, ("one",), "mix"),
        ({"one": (1.2,) * 8, "two": STEADY, "mix": (1.03, 1.05) * 5}, ("one",), "two"),
        ({"mix": STEADY, "other mix": (1.03, 1.04) * 5}, (), "other mix"),
        ({"one": STEADY, "two": (1.03,) * 10}, (), "two"),
        ({"one": STEADY, "searched": (0.9,) * 10}, (), "searched"),
        ({"one": STEADY, "searched": (1.03, 1.05) * 5}, (), "one"),
    ],
    ids=[
        "faster",
        "equal",
        "noise",
        "too short",
        "out",
        "the better whole",
        "mixes only",
        "wholes only",
        "faster schedules",
        "equal schedules",
    ],
)
def test_who_wins(samples: Mapping[str, Sequence[float]], dropped: Sequence[str], expected: str) -> None:
    assert winner(samples, dropped) == expected


class FallingTestbed(LocalTestbed):
    """Everybody takes the seconds that were planned; some are found wrong, or fail, once they race.

    Attributes:
        races: The names of the candidates of each race.
    """

    def __init__(self, alone: Mapping[str, float], falls: Mapping[str, MeasureError]) -> None:
        self.host = Host.detect()
        self.alone, self.falls = alone, falls
        self.races: list[set[str]] = []

    @property
    def width(self) -> int:
        return 16

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        for item in inputs:
            seconds = self.alone[next(name for name, known in ENTRANTS.items() if known is item)]
            yield Measured(item, Outcome(MeasureError.OK, "", (seconds,) * 6), 1.0)

    def race(self, racers: Mapping[str, AnyInput], limits: RaceLimits) -> Raced:
        self.races.append(set(racers))
        best = min(self.alone[name] for name in racers)
        candidates = tuple(
            RacedCandidate(name, (self.alone[name],) * 10, DROPPED if self.alone[name] > best else None)
            for name in racers
        )
        failures = {
            name: Outcome(self.falls[name], "it returned its first result again")
            for name in racers
            if name in self.falls
        }
        return Raced(RaceResult(candidates[0].name, RaceEnd.ONE_LEFT, candidates, 10), failures)


WRONG, CRASH = MeasureError.WRONG_ANSWER, MeasureError.CRASH


@pytest.mark.parametrize(
    ("alone", "falls", "expected", "races"),
    [
        ({"one": 0.1, "two": 0.2, "mix": 1.0}, {"one": WRONG}, "two", 1),
        ({"one": 0.1, "two": 0.11, "mix": 1.0}, {"one": WRONG, "two": WRONG}, "mix", 1),
        ({"one": 0.1, "two": 0.11, "mix": 1.0, "other mix": 1.1}, {"one": CRASH, "two": WRONG}, "mix", 2),
        ({"one": 0.1, "two": 0.2, "mix": 0.21}, {"one": WRONG}, "two", 2),
        ({"one": 0.2, "two": 0.1, "mix": 0.15}, {"one": WRONG}, "two", 1),
    ],
    ids=[
        "one is left",
        "a hopeless one returns",
        "they race again",
        "the slower race again",
        "no leader fell",
    ],
)
def test_a_leader_that_falls_takes_nobody_with_it(
    alone: Mapping[str, float], falls: Mapping[str, MeasureError], expected: str, races: int
) -> None:
    testbed = FallingTestbed(alone, falls)
    contest = Contest(Measurer(testbed), lambda: False)
    contest.enter([Entrant(name, ENTRANTS[name]) for name in alone])
    assert contest.decide(1.0, 0).name == expected
    statuses = {record.name: record.status for record in contest.records()}
    assert all(statuses[name] not in {Status.MEASURED, Status.SLOW} for name in falls)
    assert statuses[expected] is Status.MEASURED
    assert len(testbed.races) == races


def test_nobody_is_right_if_all_fall() -> None:
    testbed = FallingTestbed(
        {"one": 0.1, "two": 0.11, "mix": 0.12}, dict.fromkeys(("one", "two", "mix"), WRONG)
    )
    contest = Contest(Measurer(testbed), lambda: False)
    contest.enter([Entrant(name, ENTRANTS[name]) for name in ("one", "two", "mix")])
    with pytest.raises(VerificationError, match="no candidate computes the model right: one: wrong"):
        contest.decide(1.0, 0)


def test_who_was_not_tried_keeps_the_reason() -> None:
    contest = Contest(Measurer(PlannedTestbed({"one": [1.0] * 10}, ())), lambda: False)
    untried = Entrant("two", ENTRANTS["two"], "not tried: it takes far too long", Status.SLOW)
    contest.enter([Entrant("one", ENTRANTS["one"]), untried])
    assert contest.decide(1.0, 0).name == "one"
    records = {record.name: (record.status, record.reason) for record in contest.records()}
    assert records["two"] == (Status.SLOW, "not tried: it takes far too long")


@pytest.mark.parametrize(
    ("alone", "expected"),
    [
        ({"one": 1.0, "two": 1.1, "mix": 0.9}, "one"),
        ({"one": 1.0, "two": 0.95, "mix": 0.9}, "two"),
        ({"mix": 0.9, "other mix": 1.0}, "mix"),
    ],
    ids=["plain", "the better plain", "mixes only"],
)
def test_after_a_stop_no_mix_wins_on_a_single_measurement(alone: Mapping[str, float], expected: str) -> None:
    testbed, is_stopped = FallingTestbed(alone, {}), False
    contest = Contest(Measurer(testbed), lambda: is_stopped)
    contest.enter([Entrant(name, ENTRANTS[name]) for name in alone])
    is_stopped = True
    assert contest.decide(1.0, 0).name == expected
    assert not testbed.races
    (note,) = contest.notes
    assert "mix" in note
    assert "no race has confirmed it" in note


def test_a_race_that_was_stopped_before_its_first_round_confirms_nothing() -> None:
    contest = Contest(Measurer(PlannedTestbed({"one": (), "mix": ()}, ())), lambda: False)
    contest.enter([Entrant(name, ENTRANTS[name]) for name in ("mix", "one")])
    assert contest.decide(1.0, 0).name == "one"
    assert contest.notes


def test_two_programs_as_fast_as_each_other_do_not_race_for_long() -> None:
    """Noise of two percent: the old margin of half a percent takes at least three times the rounds."""

    def rounds(seed: int, policy: RacePolicy) -> int:
        noise = random.Random(seed)
        return race(
            ("one", "two"), lambda _: 1 + abs(noise.gauss(0, 0.02)), replace(policy, seed=seed)
        ).rounds

    totals = [sum(rounds(seed, policy) for seed in range(10)) for policy in (FINAL, EXACT)]
    assert 3 * totals[0] < totals[1]


def test_the_race_has_the_policy_of_the_contest() -> None:
    testbed = PlannedTestbed({"one": STEADY, "two": STEADY}, ())
    contest = Contest(Measurer(testbed), lambda: False, policy=EXACT)
    contest.enter([Entrant(name, ENTRANTS[name]) for name in ("one", "two")])
    contest.decide(1.0, 3)
    assert testbed.policies == [replace(EXACT, seed=3)]


def noisy(seconds: float, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [seconds * (1 + 0.02 * rng.random()) for _ in range(20)]


@pytest.mark.parametrize(
    ("small", "large", "expected"),
    [(0.5, 10.0, "mix"), (1.0, 10.0, "one"), (0.5, 12.0, "one"), (2.0, 8.0, "one")],
)
def test_faster_at_a_size_and_slower_at_none(small: float, large: float, expected: str) -> None:
    """In the mean of both sizes, which vary by two percent, half a second is nothing."""
    by_size = {
        "one": {"n=1": noisy(1.0, 1), "n=9": noisy(10.0, 2)},
        "mix": {"n=1": noisy(small, 3), "n=9": noisy(large, 4)},
    }
    means = {"one": noisy(5.5, 5), "mix": noisy(5.5, 6)}
    assert winner(means, by_size=by_size) == expected
    assert winner(means, ["mix"], by_size) == "one"


def test_the_winner_of_a_race_races_against_who_enters_later() -> None:
    """Alone, the newcomer took a tenth of the time: the machine was disturbed."""

    class Disturbed(PlannedTestbed):
        def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
            for item in inputs:
                seconds = 0.1 if item.candidate.kind != WHOLE.kind else 1.0
                yield Measured(item, Outcome(MeasureError.OK, "", (seconds,) * 6), 1.0)

    samples = {"one": noisy(1.0, 1), "two": noisy(1.5, 2), "mix": noisy(1.2, 3)}
    contest = Contest(Measurer(Disturbed(samples, ())), lambda: False)
    contest.enter([Entrant(name, ENTRANTS[name]) for name in ("one", "two")])
    assert contest.decide(1.0, 0).name == "one"
    contest.enter([Entrant("mix", ENTRANTS["mix"])])
    assert next(record.name for record in contest.records()) == "one", "before the second race"
    assert contest.decide(1.0, 0).name == "one"
    (two,) = [record for record in contest.records() if record.name == "two"]
    assert two.status is Status.SLOW
