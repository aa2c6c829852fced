"""The budget of a run and of its parts."""

from __future__ import annotations

from tests.planned_meter import PlannedMeter

from intarsia.tune.run_control import RunControl, Skipped, WallMeter


def test_a_part_ends_no_later_than_the_run() -> None:
    meter = PlannedMeter(spent=5.0)
    run = RunControl(seconds=10.0, trials=4, meter=meter)
    meter.spent = 9.0
    part = run.part(seconds=8.0)
    assert (part.seconds_left, part.trials_left) == (6.0, 4)
    meter.spent, meter.trials = 12.0, 3
    assert (part.spent, part.used, part.seconds_left, part.trials_left) == (3.0, 3, 3.0, 1)
    assert not part.is_over
    meter.trials = 4
    assert part.is_spent
    assert part.is_over


def test_what_passes_without_a_measurement_ends_the_run_and_not_its_parts() -> None:
    meter = PlannedMeter(spent=5.0)
    run = RunControl(seconds=10.0, meter=meter)
    part = run.part(seconds=2.0)
    meter.planning = 9.0
    assert (part.seconds_left, run.seconds_left) == (2.0, 10.0)
    assert not part.is_over
    meter.planning = 10.0
    assert part.is_over
    assert run.is_over
    assert not run.is_spent
    assert run.ending == part.ending == "the time was used up"


def test_a_part_ends_by_its_own_budget() -> None:
    meter = PlannedMeter()
    part = RunControl(seconds=10.0, meter=meter).part(seconds=2.0, trials=5)
    meter.spent = 2.0
    assert part.is_spent
    assert part.fraction == 1.0


def test_without_a_budget_only_a_wish_to_stop_ends_it() -> None:
    stops: list[bool] = []
    run = RunControl(meter=PlannedMeter(spent=1e9, trials=10**9), should_stop=lambda: bool(stops))
    assert not run.is_over
    assert run.fraction == 0.0
    stops.append(True)
    assert run.is_over
    assert run.part(seconds=5.0).is_over
    assert not run.is_spent


def test_what_is_left_out_is_said_once() -> None:
    notes: list[str] = []
    run = RunControl(on_note=notes.append)
    for control in (run, run.part(seconds=1.0)):
        control.skip("TuneLayout", "there was no time")
    assert run.skipped == [Skipped("TuneLayout", "there was no time")]
    assert notes == ["left out: TuneLayout: there was no time"]


def test_progress_tells_the_larger_share() -> None:
    seen: list[tuple[float, object]] = []
    meter = PlannedMeter()
    run = RunControl(seconds=10.0, trials=4, meter=meter, on_progress=lambda *event: seen.append(event))
    meter.spent, meter.trials = 2.0, 3
    run.report("half")
    assert seen == [(0.75, "half")]


def test_the_end_has_its_reason() -> None:
    meter, stops = PlannedMeter(), list[bool]()
    run = RunControl(seconds=10.0, trials=4, meter=meter, should_stop=lambda: bool(stops))
    assert run.ending == "the budget was used up"  # by limits within it
    meter.spent = 10.0
    assert run.ending == "the time was used up"
    meter.trials = 4
    assert run.ending == run.part().ending == "the trials were used up"
    stops.append(True)
    assert run.ending == "the run was stopped"


def test_trials_are_granted_until_all_are_used() -> None:
    meter = PlannedMeter()
    run = RunControl(trials=10, meter=meter)
    assert run.granted(8) == 8
    meter.trials += 8
    assert (run.granted(8), run.fraction) == (2, 0.8)
    meter.trials += 2
    assert (run.granted(8), run.fraction) == (0, 1.0)
    assert RunControl(trials=0).fraction == 1.0


def test_nothing_is_granted_when_the_time_is_over() -> None:
    now = 100.0
    run = RunControl(seconds=4.0, meter=WallMeter(lambda: now))
    now += 3.0
    assert (run.granted(5), run.spent, run.fraction) == (5, 3.0, 0.75)
    now += 2.0
    assert (run.granted(5), run.is_over, run.fraction) == (0, True, 1.0)


def test_nothing_is_granted_after_a_wish_to_stop() -> None:
    wishes = iter([False, True])
    run = RunControl(should_stop=lambda: next(wishes))
    assert [run.granted(3), run.granted(3)] == [3, 0]


def test_a_part_that_gains_nothing_ends_before_its_budget() -> None:
    meter = PlannedMeter()
    run = RunControl(seconds=100.0, meter=meter, patience=3.0)
    part = run.part(seconds=50.0, gains_soon=True)
    meter.spent = 2.0
    assert (part.seconds_left, part.budget_left) == (1.0, 48.0)
    part.part().renew()
    meter.spent = 4.5
    assert not part.is_over, "a part of it has gained"
    meter.spent = 5.0
    assert part.is_over
    assert part.part().is_over
    assert part.ending == "nothing was gained in 3.0 s"
    assert not run.is_over
    assert run.part().seconds_left == 95.0, "other parts have all of the time"


def test_a_run_that_proves_has_patience() -> None:
    meter = PlannedMeter()
    part = RunControl(seconds=100.0, meter=meter, patience=3.0, proves=True).part(gains_soon=True)
    meter.spent = 90.0
    assert part.seconds_left == 10.0


def test_a_trial_takes_what_those_before_have_taken() -> None:
    assert RunControl(meter=PlannedMeter()).seconds_per_trial == 0
    assert RunControl(meter=PlannedMeter(spent=6.0, trials=3)).part().seconds_per_trial == 2.0
