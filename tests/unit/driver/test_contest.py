"""Who wins a contest: the best of the race, but no mix that is not shown to be faster than one toolchain."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

import pytest
from tests.collage_programs import program

from intarsia.collage.placement.placement import Partition, Placement
from intarsia.driver.contest import Contest
from intarsia.driver.entrant import Entrant
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import MeasureBudget, Measurer
from intarsia.measure.race_limits import RaceLimits
from intarsia.measure.race_result import Dropped, DropReason, RacedCandidate, RaceEnd, RaceResult
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import LocalTestbed, Measured
from intarsia.target import Host, Target

WORKLOAD = Workload(program("def @main(%x: T) { Exp(Softmax(%x)) }"), "planted")
DROPPED = Dropped(8, DropReason.SLOWER, 8, 8)


class PlannedTestbed(LocalTestbed):
    """Nothing is built or run: everybody takes a second alone, and the race is as it was planned."""

    def __init__(self, samples: Mapping[str, Sequence[float]], dropped: Sequence[str]) -> None:
        self.host = Host.detect()
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

    def race(self, racers: Mapping[str, MeasureInput], limits: RaceLimits) -> Raced:
        entered = tuple(each for each in self.planned if each.name in racers)
        rounds = max(len(each.samples) for each in entered)
        return Raced(RaceResult(entered[0].name, RaceEnd.SECONDS_SPENT, entered, rounds), {})


def mix(first: str, second: str) -> MeasureInput:
    placement = Placement((Partition("main", first, (1,), "Softmax"), Partition("main", second, (2,), "Exp")))
    return MeasureInput(WORKLOAD, Target.for_toolchain("reference"), placement.candidate)


ENTRANTS = {
    "one": MeasureInput(WORKLOAD, Target.for_toolchain("one"), WHOLE),
    "two": MeasureInput(WORKLOAD, Target.for_toolchain("two"), WHOLE),
    "mix": mix("cpu -toolchain=one", "cpu -toolchain=two"),
    "other mix": mix("cpu -toolchain=two", "cpu -toolchain=one"),
}


def winner(samples: Mapping[str, Sequence[float]], dropped: Sequence[str] = ()) -> str:
    contest = Contest(Measurer(PlannedTestbed(samples, dropped)), lambda _: None, lambda: False)
    contest.enter([Entrant(name, ENTRANTS[name]) for name in samples], MeasureBudget())
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
    ],
    ids=["faster", "equal", "noise", "too short", "out", "the better whole", "mixes only", "wholes only"],
)
def test_who_wins(samples: Mapping[str, Sequence[float]], dropped: Sequence[str], expected: str) -> None:
    assert winner(samples, dropped) == expected
