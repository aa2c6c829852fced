"""One budget for several tuning passes goes where it gains most."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.tuning_passes import CostTable, Deciding, NoteHeuristic, layout, parallel, planted, program

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import Sequential
from intarsia.tune import Trace, TuningContext
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


def test_the_budget_goes_where_it_gains() -> None:
    told: list[Sequence[PassShare]] = []
    ctx = TuningContext(CostTable(cost))
    limits = SearchLimits(trials=80)
    pass_ = TuneInTurns(passes(), limits, slice_trials=8, on_report=told.append, clock=Clock())
    found = pass_(program(), ctx)
    idle, useful = told[0]
    assert useful.measured > 3 * idle.measured
    assert cost(found) < 100.0 - 40
    assert useful.gain > 0.4 > idle.gain
    assert "useful" not in str(idle)
    assert "% less time by single measurements, unproven" in str(useful)
    assert "faster" not in str(useful), "nothing was raced"


def test_with_enough_budget_it_ends_as_in_a_row() -> None:
    row = Sequential([NoteHeuristic(), parallel(), layout()])(program(), TuningContext(CostTable(planted)))
    told: list[Sequence[PassShare]] = []
    turns = TuneInTurns((NoteHeuristic(), parallel(), layout()), on_report=told.append)
    found = turns(program(), TuningContext(CostTable(planted)))
    assert planted(found) == planted(row) == 9
    assert found.attrs["heuristic"] == "yes"
    assert all(share.is_done for share in told[0])


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
    limits = SearchLimits(should_stop=lambda: len(table.modules) > 10)
    found = TuneInTurns(passes(), limits)(program(), TuningContext(table))
    assert cost(found) <= cost(program())
    assert len(table.modules) < 40


def test_nothing_to_tune_is_refused() -> None:
    with pytest.raises(UsageError, match="needs a tuning pass"):
        TuneInTurns((NoteHeuristic(),))
