"""Races of candidates with planted costs, in real workers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from tests.unit.measure.hazards import bad_to_build, bad_to_run
from tests.unit.measure.quick_testbed import WORKLOAD, as_input, quick_testbed

from intarsia.measure.measure_input import Candidate
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.result import DropReason, RaceEnd
from intarsia.measure.runner import Raced
from intarsia.measure.testbed.local import LocalTestbed

THIRD_TURN = 4
"""The call of a kernel in the third turn: each turn calls once, and the first one before that to warm up."""


@pytest.fixture
def testbed(shared_testbed: LocalTestbed) -> LocalTestbed:
    return shared_testbed


@pytest.fixture(scope="module")
def short_testbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalTestbed]:
    """A testbed in which a turn may take five seconds."""
    with quick_testbed(tmp_path_factory.mktemp("races"), limit_s=5.0) as opened:
        yield opened


def raced(testbed: LocalTestbed, racers: dict[str, Candidate], limits: RaceLimits | None = None) -> Raced:
    inputs = {name: as_input(candidate) for name, candidate in racers.items()}
    return testbed.race(inputs, limits or RaceLimits())


def equals(fault: str | None = None) -> dict[str, Candidate]:
    """Two candidates that take the same time."""
    return {"one": bad_to_run(1, fault, seconds=0.02), "other": bad_to_run(2, fault, seconds=0.02)}


def samples(race: Raced, name: str) -> int:
    assert race.result is not None
    return len(race.result.candidate(name).samples)


@pytest.mark.slow
def test_the_fastest_wins_and_the_hopeless_cost_few_samples(testbed: LocalTestbed) -> None:
    costs = {"slowest": 0.03, "slow": 0.015, "fast": 0.005, "slower": 0.02}
    race = raced(testbed, {name: bad_to_run(10, seconds=seconds) for name, seconds in costs.items()})
    assert race.result is not None
    assert (race.result.winner, race.result.end, race.failures) == ("fast", RaceEnd.ONE_LEFT, {})
    assert [each.name for each in race.ranking] == sorted(costs, key=lambda name: costs[name])
    for name in ("slow", "slower", "slowest"):
        dropped = race.result.candidate(name).dropped
        assert dropped is not None
        assert dropped.reason in {DropReason.HOPELESS, DropReason.SLOWER}
        assert samples(race, name) < 15
    assert all(each.median >= costs[each.name] for each in race.ranking)


@pytest.mark.slow
def test_a_race_ends_when_its_time_is_spent(testbed: LocalTestbed) -> None:
    """Each turn takes a second by this clock; two equal candidates, so that nothing is decided by then."""
    turns, told = count(), list[tuple[int, float]]()
    limits = RaceLimits(seconds=9, clock=lambda: float(next(turns)), on_turn=lambda *each: told.append(each))
    race = raced(testbed, equals(), limits)
    assert race.result is not None
    assert (race.result.end, race.result.repeats, race.result.rounds) == (RaceEnd.SECONDS_SPENT, 9, 4)
    assert told == [(turn // 2, float(turn)) for turn in range(1, 10)]


@pytest.mark.slow
def test_a_race_without_time_still_has_the_least_rounds(testbed: LocalTestbed) -> None:
    racers = equals()
    race = raced(testbed, racers, RaceLimits(seconds=0))
    assert race.result is not None
    assert (race.result.end, race.result.rounds) == (RaceEnd.SECONDS_SPENT, 3)


def test_a_wish_to_stop_ends_a_race_with_what_there_is(testbed: LocalTestbed) -> None:
    asked = count(1)
    limits = RaceLimits(should_stop=lambda: next(asked) >= 5)
    racers = equals()
    race = raced(testbed, racers, limits)
    assert race.result is not None
    assert (race.result.end, race.result.repeats) == (RaceEnd.STOPPED, 5)
    assert len(race.ranking) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("segfault", MeasureError.CRASH),
        ("kill_parent", MeasureError.CRASH),
        ("raise_error", MeasureError.RUNTIME),
        ("allocate_at_once", MeasureError.OUT_OF_MEMORY),
        ("loop", MeasureError.RUN_TIMEOUT),
    ],
)
def test_who_fails_in_a_turn_is_withdrawn_and_the_others_go_on(
    short_testbed: LocalTestbed, fault: str, error: MeasureError
) -> None:
    racers = {
        "slow": bad_to_run(30, seconds=0.02),
        "bad": bad_to_run(30, fault, at_call=THIRD_TURN, seconds=0.001),
        "fast": bad_to_run(30, seconds=0.005),
    }
    race = raced(short_testbed, racers)
    assert race.result is not None
    assert race.result.winner == "fast"
    dropped = race.result.candidate("bad").dropped
    assert dropped is not None
    assert (dropped.reason, dropped.round, samples(race, "bad")) == (DropReason.WITHDRAWN, 3, 2)
    assert {name: outcome.error for name, outcome in race.failures.items()} == {"bad": error}
    assert [each.name for each in race.ranking] == ["fast", "slow"]
    assert samples(race, "fast") >= 3


@pytest.mark.processes
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (bad_to_run(40, wrong_from=THIRD_TURN, seconds=0.001), MeasureError.WRONG_ANSWER),
        (bad_to_run(40, "segfault", at_call=THIRD_TURN + 1, seconds=0.001), MeasureError.CRASH),
    ],
    ids=["wrong", "crashes"],
)
def test_who_goes_bad_after_many_calls_never_wins(
    testbed: LocalTestbed, bad: Candidate, error: MeasureError
) -> None:
    """The others race again: they were hopeless beside the bad one only."""
    racers = {"bad": bad, "slow": bad_to_run(40, seconds=0.03), "fast": bad_to_run(40, seconds=0.01)}
    race = raced(testbed, racers)
    assert race.result is not None
    assert (race.result.winner, race.result.end) == ("fast", RaceEnd.ONE_LEFT)
    assert {name: outcome.error for name, outcome in race.failures.items()} == {"bad": error}
    assert [each.name for each in race.ranking] == ["fast", "slow"]


def test_who_goes_wrong_while_it_is_timed_alone_is_wrong(testbed: LocalTestbed) -> None:
    """Calls on all input sets and on the first one again are right; the first one that is timed is not."""
    checks = len(testbed.prepare(WORKLOAD).trials()) + 1
    bad, good = bad_to_run(50, wrong_from=checks + 2), bad_to_run(50)
    outcomes = [measured.outcome for measured in testbed.measure([as_input(bad), as_input(good)])]
    assert [outcome.error for outcome in outcomes] == [MeasureError.WRONG_ANSWER, MeasureError.OK]
    assert outcomes[0].message.startswith("in poisoned memory: ")


@pytest.mark.processes
def test_who_cannot_be_built_does_not_start(testbed: LocalTestbed) -> None:
    race = raced(testbed, {"bad": bad_to_build(1, "abort"), "good": bad_to_build(1)})
    assert race.result is not None
    assert [candidate.name for candidate in race.result.candidates] == ["good"]
    assert race.failures["bad"].error is MeasureError.CRASH
    assert raced(testbed, {"bad": bad_to_build(2, "abort")}).result is None


def test_nobody_is_left(testbed: LocalTestbed) -> None:
    race = raced(testbed, equals("segfault"))
    assert race.result is not None
    assert (race.result.winner, race.result.end, race.ranking) == (None, RaceEnd.NOBODY_LEFT, ())
    assert set(race.failures) == {"one", "other"}


def test_one_candidate_under_two_names(testbed: LocalTestbed) -> None:
    same = bad_to_run(60, seconds=0.005)
    race = raced(testbed, {"one": same, "other": same}, RaceLimits(seconds=0))
    assert race.failures == {}
    assert {each.name for each in race.ranking} == {"one", "other"}


def test_candidates_of_a_race_have_one_workload(testbed: LocalTestbed) -> None:
    with pytest.raises(ValueError, match="a race has candidates of one workload"):
        testbed.race({}, RaceLimits())
