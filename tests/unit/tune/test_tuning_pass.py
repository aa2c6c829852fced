"""Tuning passes find the best decisions, alone, in a row and jointly."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import pytest
from tests.tuning_passes import (
    CostTable,
    Deciding,
    NoteHeuristic,
    decided,
    layout,
    parallel,
    planted,
    program,
)

from intarsia.support.errors import UsageError
from intarsia.transform import Sequential
from intarsia.tune import (
    Choice,
    Instruction,
    Trace,
    TuningContext,
    TuningPass,
    evaluate,
    generate_candidates,
    select_best_candidate,
)
from intarsia.tune.heuristic_pass import APPLIED
from intarsia.tune.strategy import RandomSearch, SearchLimits
from intarsia.tune.tuning_context import TraceRecorder


def test_joint_tuning_finds_what_tuning_in_a_row_misses() -> None:
    in_a_row = Sequential([parallel(), layout()])(program(), TuningContext(CostTable(planted)))
    jointly = parallel(layout())(program(), TuningContext(CostTable(planted)))
    assert planted(in_a_row) == 9
    assert planted(jointly) == 5
    assert (jointly.attrs["parallel"], jointly.attrs["layout"]) == ("on", "NHWC")


def test_the_first_of_equal_candidates_wins_and_failures_never_do() -> None:
    costs = {"0": inf, "1": 2.0, "2": 2.0, "3": 3.0}
    table = CostTable(lambda mod: costs[str(mod.attrs["fact"])])
    best = Deciding(values=tuple(costs))(program(), TuningContext(table))
    assert best.attrs["fact"] == "1"


def test_trace_mode_notes_heuristic_passes_and_best_decisions() -> None:
    trace = Trace(program())
    ctx = TuningContext(CostTable(planted)).recording(trace)
    passes = [NoteHeuristic(value="no"), parallel(layout()), NoteHeuristic()]
    after = Sequential(passes)(trace.out_mod, ctx)
    assert isinstance(ctx.trace, TraceRecorder)
    found = ctx.trace.tuned
    assert [(step.instruction.name, step.decision) for step in found.steps] == [
        ("NoteHeuristic", APPLIED),
        ("Decide parallel", "on"),
        ("Decide layout", "NHWC"),
        ("NoteHeuristic", APPLIED),
    ]
    assert found.out_mod is after
    assert found.perf is None  # the last pass has changed the program


def test_a_candidate_without_an_open_choice_is_left_out() -> None:
    first = Instruction("first", {"a": decide("fact", "a"), "b": decide("fact", "b")})
    second = Instruction(
        "second", [decide("other", "0", "only_if", {"what": "fact", "value": "a"}), Choice()]
    )
    ctx = TuningContext(CostTable())
    found = generate_candidates([first, second], Trace(program()), ctx)
    assert [[step.decision for step in each.steps] for each in found] == [["a", "0"], ["a", "1"], ["b", "1"]]


def decide(what: str, value: str, constraint: str = "always", args: dict[str, str] | None = None) -> Choice:
    return Choice(decided, {"what": what, "value": value}, constraint, args or {})


def test_selection_needs_evaluated_candidates() -> None:
    with pytest.raises(UsageError, match="no candidate"):
        select_best_candidate([])
    with pytest.raises(UsageError, match="not been evaluated"):
        select_best_candidate([Trace(program())])


def test_evaluated_candidates_are_not_evaluated_again() -> None:
    table = CostTable()
    ctx = TuningContext(table)
    candidates = [Trace(program())]
    evaluate(candidates, ctx)
    evaluate(candidates, ctx)
    assert ctx.num_evals == 1
    assert candidates[0].perf == 1.0


@dataclass(frozen=True)
class Climbing(TuningPass):
    """A loop of its own: raises a number while that pays."""

    def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
        best = trace
        evaluate([best], ctx)
        while True:
            height = int(str(best.out_mod.attrs.get("height", "0")))
            step = Instruction("climb", {"up": decide("height", str(height + 1)), "stay": Choice()})
            candidates = generate_candidates(step, best, ctx, self.eval_passes)
            evaluate(candidates, ctx)
            after = select_best_candidate(candidates)
            if after.perf is None or best.perf is None or after.perf >= best.perf:
                return best
            best = after


def test_a_pass_with_a_loop_of_its_own() -> None:
    table = CostTable(lambda mod: abs(3 - int(str(mod.attrs.get("height", "0")))))
    ctx = TuningContext(table)
    assert Climbing()(program(), ctx).attrs["height"] == "3"
    assert ctx.counts.measured == 5  # the heights 0 to 4


def test_a_pass_that_says_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to decide"):
        TuningPass()(program(), TuningContext(CostTable()))


def test_a_disabled_tuning_pass_does_not_run() -> None:
    ctx = TuningContext(CostTable(), disabled_pass=["Climbing"])
    mod = program()
    assert Sequential([Climbing()])(mod, ctx) is mod
    assert ctx.num_evals == 0


def test_a_pass_with_a_strategy_tries_what_the_strategy_says() -> None:
    values = tuple(map(str, range(40)))
    table = CostTable(lambda mod: abs(17 - int(str(mod.attrs["fact"]))) + 1.0)
    ctx = TuningContext(table)
    limits = SearchLimits(trials=12)
    after = Deciding(values=values, strategy=RandomSearch(seed=3), limits=limits)(program(), ctx)
    assert ctx.num_evals == 12
    tried = [int(str(mod.attrs["fact"])) for mod in table.modules]
    assert int(str(after.attrs["fact"])) == min(tried, key=lambda value: abs(17 - value))


def test_closed_combinations_are_not_evaluated() -> None:
    table = CostTable()
    ctx = TuningContext(table)
    best = Dependent()(program(), ctx)
    assert ctx.num_evals == 3
    assert best.attrs["first"] == "a"


@dataclass(frozen=True)
class Dependent(TuningPass):
    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        only = decide("second", "0", "only_if", {"what": "first", "value": "a"})
        choices = {"a": decide("first", "a"), "b": decide("first", "b")}
        return [Instruction("first", choices), Instruction("second", [only, Choice()])]
