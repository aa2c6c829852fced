"""The way from the fastest toolchain alone to the winner."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.explanations import RUN

from intarsia.report.explanation import ContestRecord, Explanation
from intarsia.report.run_records import TrialRecord
from intarsia.report.tuning_record import TuningRecord
from intarsia.report.waterfall import Waterfall, waterfall

NATIVE, OTHER = "cpu -toolchain=native", "cpu -toolchain=other"


def raced(
    name: str, seconds: float, target: str, *, chosen: bool = False, whole: bool = True
) -> ContestRecord:
    ratio = seconds / 2e-3
    return ContestRecord(name, "measured", "", seconds, ratio, ratio, ratio, None, whole, chosen, target)


def candidate(
    name: str, seconds: float | None, *children: TuningRecord, chosen: bool = False
) -> TuningRecord:
    return TuningRecord(name, True, seconds, "", chosen, children)


def tuning_pass(name: str, *children: TuningRecord) -> TuningRecord:
    return TuningRecord(name, False, None, "", False, children)


TREE = tuning_pass(
    "tuning",
    tuning_pass(
        "TunePlacement",
        candidate("other", 5e-3),
        candidate(
            "native",
            3e-3,
            candidate("as it is", 4e-3),
            tuning_pass("TuneLayout", candidate("as it is", 4e-3), candidate("NHWC", 3.5e-3, chosen=True)),
            tuning_pass("TunePacking", candidate("as it is", 3.5e-3, chosen=True)),
            tuning_pass("TuneThreads", candidate("as it is", 3.5e-3), candidate("one", 3e-3, chosen=True)),
            chosen=True,
        ),
    ),
)
TUNED = replace(
    RUN,
    contest=(
        raced("native tuned", 2e-3, "cpu -toolchain=reference", chosen=True, whole=False),
        raced("other", 4e-3, OTHER),
        raced("native", 4.5e-3, NATIVE),
    ),
    decisions=("layout: NHWC", "threads: one"),
    tuning=(TREE,),
    trials=(TrialRecord(1.0, 1.0, RUN.workload, OTHER, "whole", 5e-3, "ok"),),
)


def steps(explanation: Explanation) -> list[tuple[str, float]]:
    way = waterfall(explanation)
    assert isinstance(way, Waterfall)
    ends = (way.winner.seconds or 0.0) - (way.engine.seconds or 0.0)
    assert sum(step.delta for step in way.steps) == pytest.approx(ends)
    assert [step.is_rest for step in way.steps] == [False] * (len(way.steps) - 1) + [True]
    return [(step.label, round(step.delta * 1e3, 6)) for step in way.steps]


def test_decisions_by_single_measurements() -> None:
    assert steps(TUNED) == [
        ("TunePlacement: native", -1.0),
        ("TuneLayout: NHWC", -0.5),
        ("TuneThreads: one", -0.5),
        ("not explained by single measurements", 0.0),
    ]


def test_what_the_race_did_not_confirm_is_the_rest() -> None:
    slower = replace(TUNED, contest=(replace(TUNED.contest[0], seconds=3.9e-3), *TUNED.contest[1:]))
    assert steps(slower)[-1] == ("not explained by single measurements", 1.9)


def test_parts_that_both_toolchains_were_measured_on() -> None:
    assert steps(RUN) == [
        ("Conv+Relu on fast", -0.5),
        ("not explained by single measurements", 0.2),
    ]


def test_a_toolchain_that_was_too_slow_to_race() -> None:
    lonely = replace(TUNED.contest[1], ratio=None, ratio_low=None, ratio_high=None, status="slow")
    way = waterfall(replace(TUNED, contest=(TUNED.contest[0], lonely)))
    assert isinstance(way, Waterfall)
    assert way.engine is lonely
    assert way.remark.startswith("The fastest toolchain alone was too slow to race")


def test_a_winner_without_a_race() -> None:
    contest = tuple(replace(record, ratio=None, ratio_low=None, ratio_high=None) for record in TUNED.contest)
    way = waterfall(replace(TUNED, contest=contest))
    assert isinstance(way, Waterfall)
    assert way.remark.startswith("There was no race: both ends are single measurements")


def test_searched_schedules_are_a_decision() -> None:
    contest = (
        raced("native s", 2e-3, f"{NATIVE} -schedules=ac21", chosen=True),
        raced("native", 3e-3, NATIVE),
    )
    log = tuning_pass("TuneSchedule", candidate("default", 4e-3), candidate("log ac21", 3e-3, chosen=True))
    trials = (TrialRecord(1.0, 1.0, RUN.workload, NATIVE, "whole", 4e-3, "ok"),)
    searched = replace(RUN, contest=contest, tuning=(log,), trials=trials)
    assert steps(searched)[0] == ("TuneSchedule: log ac21", -1.0)


def test_a_toolchain_as_it_is_has_no_way() -> None:
    won = (raced("native", 2e-3, NATIVE, chosen=True), raced("other", 4e-3, OTHER))
    assert waterfall(replace(TUNED, contest=won, decisions=())) == (
        "native won as it is: no decision of a pass or of a placement is part of it."
    )


def test_no_other_toolchain() -> None:
    assert waterfall(replace(TUNED, contest=TUNED.contest[:1])) == (
        "No other toolchain alone runs the whole model, so that there is nothing to start from."
    )
