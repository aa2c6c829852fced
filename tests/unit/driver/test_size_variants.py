"""The winner gets a variant at each named size where another program is faster."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping, Sequence

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import build, from_onnx
from intarsia.driver.dynamic_mode import DynamicMode, read_dynamic
from intarsia.driver.shape_samples import sized_program
from intarsia.driver.size_variants import SizeVariants
from intarsia.ir.variant import variants
from intarsia.measure.candidate_kind import WHOLE, instantiate
from intarsia.measure.candidate_task import Outcome
from intarsia.measure.judge.sized_trials import sized_trials
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.measurer import Measurer
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.result import RacedCandidate, RaceEnd, RaceResult
from intarsia.measure.runner import Raced
from intarsia.measure.testbed import LocalTestbed, Measured
from intarsia.measure.worker_calls import AnyInput
from intarsia.support.callbacks import never, silent
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target
from intarsia.tune.contest.contest import Contest
from intarsia.tune.contest.entrant import Entrant
from intarsia.tune.tuned_candidate import decisions_and_base

NATIVE, ENGINE = Target("cpu -toolchain=native"), Target("cpu -toolchain=reference")
OTHER = Target("cpu -toolchain=onnxruntime")
GENERIC = {"batch=1": 4.0, "batch=4": 8.0, "batch=6": 9.0}
"""Seconds of the program for any size, by size."""


class PlannedTestbed(LocalTestbed):
    """Nothing is built or run: programs for one size take planned seconds, and the race is planned."""

    def __init__(self, static: Mapping[tuple[str, str], float | None]) -> None:
        self.host = Host.detect()
        self.static = static
        self.measured: list[str] = []

    @property
    def width(self) -> int:
        return 16

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        for item in inputs:
            size = item.workload.name.removeprefix("m at ")
            seconds = self.static.get((size, str(item.target.toolchain)), 1.0)
            self.measured.append(f"{size} on {item.target.toolchain}")
            failed = Outcome(MeasureError.COMPILE, "no")
            yield Measured(
                item, failed if seconds is None else Outcome(MeasureError.OK, "", (seconds,) * 6), 1.0
            )

    def race(self, racers: Mapping[str, AnyInput], limits: RaceLimits) -> Raced:
        raced, by_size = [], {}
        for number, (name, item) in enumerate(racers.items()):
            rng = random.Random(number)
            sizes = dict(GENERIC)
            for text, _ in decisions_and_base(item.candidate)[0]:
                size, _, toolchain = text.removeprefix("SpecializeSizes: ").partition(" on ")
                sizes[size] = self.static[size, toolchain] or 0.0
            by_size[name] = {
                size: [seconds * (1 + 0.01 * rng.random()) for _ in range(12)]
                for size, seconds in sizes.items()
            }
            means = tuple(sum(row) / len(sizes) for row in zip(*by_size[name].values(), strict=True))
            raced.append(RacedCandidate(name, means, None))
        return Raced(RaceResult(raced[0].name, RaceEnd.SECONDS_SPENT, tuple(raced), 12), {}, by_size)


def workload(sizes: str = "1:0.5,4:0.3,6:0.2") -> Workload:
    mod = from_onnx(model_of("g (float[batch, 16] x) => (float[batch, 16] y) { y = Softmax (x) }"))
    sized = sized_program(mod, {"batch": sizes}, {}, silent)
    return Workload(sized.module, "m", samples=sized.samples)


def decided(
    static: Mapping[tuple[str, str], float | None],
    sizes: str = "1:0.5,4:0.3,6:0.2",
    seconds: float = 99.0,
    should_stop: Callable[[], bool] = never,
) -> tuple[bool, Entrant, PlannedTestbed, Contest]:
    """Whether there are variants, the winner, the testbed and the contest."""
    testbed, item = PlannedTestbed(static), workload(sizes)
    contest = Contest(Measurer(testbed), never)
    contest.enter([Entrant("reference", MeasureInput(item, ENGINE, WHOLE))])
    contest.enter([Entrant("onnxruntime", MeasureInput(item, OTHER, WHOLE))])
    winner = contest.decide(1.0, 0)
    contest.should_stop = should_stop
    trials = sized_trials(item.module, item.inputs(), item.samples)
    entered = SizeVariants(contest, item, trials, (NATIVE, OTHER, ENGINE), seconds).enter(winner)
    return entered, contest.decide(1.0, 0), testbed, contest


STATIC = {
    ("batch=1", "native"): 2.0,
    ("batch=1", "onnxruntime"): 3.0,
    ("batch=4", "native"): None,
    ("batch=4", "onnxruntime"): 4.0,
    ("batch=6", "native"): 9.5,
    ("batch=6", "onnxruntime"): 8.9,
}


def test_the_fastest_program_at_each_size_becomes_a_variant() -> None:
    entered, winner, testbed, _ = decided(STATIC)
    assert entered
    assert winner.name.endswith("by size")
    assert [text for text, _ in decisions_and_base(winner.input.candidate)[0]] == [
        "SpecializeSizes: batch=1 on native",
        "SpecializeSizes: batch=4 on onnxruntime",
    ], "at batch 6 nothing is faster by three percent"
    sizes = [name for name in testbed.measured if name != "m on reference" and " on native" in name]
    assert sizes == ["batch=1 on native", "batch=4 on native", "batch=6 on native"], "frequent sizes first"


def test_the_program_with_variants_computes_every_size() -> None:
    _, winner, _, _ = decided(STATIC)
    program = instantiate(winner.input.workload.module, ENGINE, winner.input.candidate)
    assert [*variants(program).values()] == [{"batch": 1}, {"batch": 4}]
    with build(program) as executable:
        for rows in (1, 2, 4, 6):
            x = np.random.default_rng(rows).normal(size=(rows, 16)).astype(np.float32)
            powers = np.exp(x)
            np.testing.assert_allclose(executable(x), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)


def test_no_variant_where_nothing_is_faster() -> None:
    slow = {(size, name): 50.0 for size in GENERIC for name in ("native", "onnxruntime")}
    entered, winner, _, contest = decided(slow)
    assert not entered
    assert not decisions_and_base(winner.input.candidate)[0]
    assert len(contest.entrants) == 2


def test_a_range_names_no_sizes() -> None:
    entered, _, testbed, _ = decided(STATIC, "1..6")
    assert not entered
    assert set(testbed.measured) == {"m on reference", "m on onnxruntime"}


def test_without_time_sizes_are_left_out_with_a_note() -> None:
    _, winner, testbed, contest = decided(STATIC, seconds=2.5)
    assert contest.notes == ["there was no time for variants for batch=4, batch=6"]
    texts = [text for text, _ in decisions_and_base(winner.input.candidate)[0]]
    assert texts == ["SpecializeSizes: batch=1 on native"]
    assert "batch=4 on onnxruntime" not in testbed.measured, "a part of the targets decides nothing"
    assert not decided(STATIC, should_stop=lambda: True)[0]


def test_variants_of_an_earlier_plan_are_not_added_again() -> None:
    _, winner, _, contest = decided(STATIC)
    trials = sized_trials(
        winner.input.workload.module, winner.input.workload.inputs(), winner.input.workload.samples
    )
    again = SizeVariants(contest, winner.input.workload, trials, (NATIVE, OTHER, ENGINE), 99.0)
    assert not again.enter(winner)


def test_modes_by_name() -> None:
    assert read_dynamic("none") is DynamicMode.NONE
    with pytest.raises(UsageError, match="dynamic is 'lots', expected 'eager' or 'none'"):
        read_dynamic("lots")
