"""One budget for several tuning passes goes where it gains most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tests.planned_meter import PlannedMeter
from tests.tuning_passes import CostTable, Deciding, NoteHeuristic, layout, parallel, planted, program

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, Sequential
from intarsia.tune import Evaluation, Trace, TuningContext
from intarsia.tune.passes import TuneCombineParallel, TuneLayout
from intarsia.tune.run_control import RunControl, WallMeter
from intarsia.tune.strategy import RandomSearch, SearchLimits
from intarsia.tune.tune_in_turns import PassShare, TuneInTurns
from intarsia.tune.tuning_context import TraceRecorder

MANY = tuple(map(str, range(64)))


def cost(mod: IRModule) -> float:
    """Of `useful` each step up gains, of `idle` nothing does."""
    useful = int(str(mod.attrs.get("useful", "0")))
    return 100.0 - useful + 0.001 * int(str(mod.attrs.get("idle", "0")))


def passes() -> tuple[Deciding, Deciding]:
    return (
        Deciding(what="idle", values=MANY),
        Deciding(what="useful", values=MANY),
    )


class Clock:
    """A second for each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def shares(ctx: TuningContext) -> list[PassShare]:
    return [note for note in ctx.node.notes if isinstance(note, PassShare)]


def test_the_budget_goes_where_it_gains() -> None:
    ctx = TuningContext(CostTable(cost), control=RunControl(meter=WallMeter(Clock())))
    found = TuneInTurns(passes(), SearchLimits(trials=80), slice_trials=8)(program(), ctx)
    idle, useful = shares(ctx)
    assert useful.measured > 3 * idle.measured
    assert cost(found) < 100.0 - 40
    assert useful.gain > 0.4 > idle.gain
    assert "useful" not in str(idle)
    assert "% less time by single measurements, unproven" in str(useful)
    assert "faster" not in str(useful), "nothing was raced"


def test_with_enough_budget_it_ends_as_in_a_row() -> None:
    row = Sequential([NoteHeuristic(), parallel(), layout()])(program(), TuningContext(CostTable(planted)))
    ctx = TuningContext(CostTable(planted))
    found = TuneInTurns((NoteHeuristic(), parallel(), layout()))(program(), ctx)
    assert planted(found) == planted(row) == 9
    assert found.attrs["heuristic"] == "yes"
    assert all(share.is_done for share in shares(ctx))


def test_a_search_that_gains_nothing_ends_before_its_budget() -> None:
    """Idle decisions cost a trial each: nothing is expected of the rest, and the reason is recorded."""
    limited, proving = (
        TuningContext(
            CostTable(cost), control=RunControl(seconds=1000.0, meter=WallMeter(Clock()), proves=proves)
        )
        for proves in (False, True)
    )
    idle = (Deciding(what="idle", values=MANY),)
    for ctx in (limited, proving):
        TuneInTurns(idle, slice_trials=4)(program(), ctx)
    assert limited.counts.measured < 40
    (skipped,) = limited.control.skipped
    assert "more is expected of the rest" in str(skipped)
    assert len(set(map(str, shares(proving)))) == 1
    assert shares(proving)[0].is_done
    assert proving.counts.measured == 1 + len(MANY)


def test_passes_without_a_slice_are_recorded() -> None:
    ctx = TuningContext(CostTable(cost), control=RunControl(seconds=0.5, meter=WallMeter(Clock())))
    TuneInTurns(passes())(program(), ctx)
    assert list(map(str, ctx.control.skipped)) == ["Deciding: the time was used up before its turn"]


def test_several_passes_without_a_slice_are_one_note() -> None:
    notes: list[str] = []
    control = RunControl(seconds=0.5, meter=WallMeter(Clock()), on_note=notes.append)
    row = (Deciding(), TuneLayout(), TuneCombineParallel())
    TuneInTurns(row)(program(), TuningContext(CostTable(cost), control=control))
    names = "Deciding, TuneLayout, TuneCombineParallel"
    assert notes == [f"left out: {names}: the time was used up before their turn"]


def test_a_single_slice_is_no_plural() -> None:
    assert str(PassShare("A", slices=1, measured=2)) == "A: 1 slice, 2 measured, 0.0 s, no gain"
    assert str(PassShare("A", slices=2, is_done=True)) == "A: 2 slices, 0 measured, 0.0 s, no gain, done"


def test_limits_of_a_pass_hold_within_the_budget() -> None:
    ctx = TuningContext(CostTable(cost))
    useful = Deciding(what="useful", values=MANY, limits=SearchLimits(trials=3))
    found = TuneInTurns((useful,), slice_trials=8)(program(), ctx)
    assert ctx.counts.distinct == 1 + 3
    assert found.attrs["useful"] == "2"


def test_the_result_is_never_worse_than_the_program() -> None:
    table = CostTable(lambda mod: 5.0 if "fact" in mod.attrs else 1.0)
    mod = program()
    assert TuneInTurns((Deciding(),))(mod, TuningContext(table)) is mod


def test_decisions_are_noted_in_the_trace() -> None:
    trace = Trace(program())
    ctx = TuningContext(CostTable(cost)).recording(trace)
    strategy = RandomSearch()
    row = TuneInTurns((Deciding(what="useful", values=MANY[:8], strategy=strategy),))
    row(trace.out_mod, ctx)
    assert isinstance(ctx.trace, TraceRecorder)
    assert [step.decision for step in ctx.trace.tuned.steps] == ["7"]


def test_a_wish_to_stop_ends_it_with_the_best_so_far() -> None:
    table = CostTable(cost)
    control = RunControl(should_stop=lambda: len(table.modules) > 10)
    found = TuneInTurns(passes())(program(), TuningContext(table, control=control))
    assert cost(found) <= cost(program())
    assert len(table.modules) < 40


def test_nothing_to_tune_is_refused() -> None:
    with pytest.raises(UsageError, match="needs a tuning pass"):
        TuneInTurns((NoteHeuristic(),))


@dataclass
class Measured(PlannedMeter, CostTable):
    """Counts a second for each candidate, as a meter, after 30 seconds for 10 candidates."""

    spent: float = 30.0
    trials: int = 10

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        evaluations = super().evaluate(candidates)
        self.spent += sum(item.is_new for item in evaluations)
        self.trials += sum(item.is_new for item in evaluations)
        return evaluations


def run_in_turns(row: Sequence[Pass], **options: Any) -> TuningContext:
    judge = Measured(cost)
    ctx = TuningContext(judge, control=RunControl(meter=judge, **options))
    TuneInTurns(tuple(row), slice_trials=4)(program(), ctx)
    return ctx


LITTLE = Deciding(what="useful", values=MANY, expected_gain=0.002)


@pytest.mark.parametrize(
    ("seconds", "proves", "is_tried"), [(60.0, False, False), (6000.0, False, True), (60.0, True, True)]
)
def test_a_pass_of_which_little_is_expected_is_tried_if_there_is_much_time(
    seconds: float, *, proves: bool, is_tried: bool
) -> None:
    """Four candidates take 12 seconds, and are expected to save 0.2 %: that is 1 % in a minute."""
    ctx = run_in_turns([LITTLE], seconds=seconds, proves=proves)
    assert bool(shares(ctx)[0].slices) is is_tried
    if not is_tried:
        (skipped,) = ctx.control.skipped
        assert str(skipped).startswith("Deciding: 1.0 % more is expected of the rest: --until-proven")


def test_what_nothing_is_expected_of_comes_last() -> None:
    rest = Deciding(what="idle", values=("0", "1"))
    ctx = run_in_turns([LITTLE, rest], seconds=6000.0)
    assert all(share.slices for share in shares(ctx))
    assert isinstance(ctx.evaluator, Measured)
    assert "useful" not in ctx.evaluator.modules[1].attrs


def test_passes_that_gain_nothing_end_with_the_patience() -> None:
    idle = Deciding(what="idle", values=MANY, strategy=RandomSearch())
    judge = Measured(cost)
    run = RunControl(seconds=6000.0, meter=judge, patience=10.0)
    ctx = TuningContext(judge, control=run.part(gains_soon=True))
    TuneInTurns((idle, LITTLE), slice_trials=4)(program(), ctx)
    assert judge.spent - 30.0 <= 10.0 + 4
    assert "nothing was gained in 10.0 s before its turn" in " ".join(map(str, run.skipped))


def test_every_pass_gets_a_turn_with_a_patience_of_its_own() -> None:
    idle = Deciding(what="idle", values=MANY, strategy=RandomSearch())
    useful = Deciding(what="useful", values=("0", "1"))
    judge = Measured(cost)
    run = RunControl(seconds=6000.0, meter=judge, patience=3.0)
    ctx = TuningContext(judge, control=run.part(gains_soon=True))
    after = TuneInTurns((idle, useful), slice_trials=4)(program(), ctx)
    assert after.attrs["useful"] == "1"
