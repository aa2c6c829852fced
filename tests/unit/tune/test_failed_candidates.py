"""What does not work is a failed candidate with its reason: it never wins, and it never ends a run."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import pytest
from tests.layered_programs import layers
from tests.tuning_passes import CostTable, Deciding, decided, layout, parallel, program

from intarsia.ir import IRModule, structural_equal
from intarsia.support.errors import DatabaseError, StoppedError, UnsupportedModelError, UsageError
from intarsia.target import Target
from intarsia.transform import ModulePass, PassContext, register_pass
from intarsia.tune import (
    Choice,
    Evaluation,
    Instruction,
    Trace,
    TuneInTurns,
    TuningContext,
    TuningPass,
    constraint,
    generate_candidates,
    query_cost_model,
    select_best_candidate,
    transformation,
)
from intarsia.tune.passes import TuneSubgraphs
from intarsia.tune.strategy import (
    Beam,
    EvolutionarySearch,
    Exhaustive,
    Greedy,
    IntegerProgram,
    RandomSearch,
    SimulatedAnnealing,
    Strategy,
    Trials,
)
from intarsia.tune.whole_evaluator import WholeEvaluator

NO_COSTS = pytest.mark.parametrize("number", [nan, -1.0, -inf])
ERRORS = {
    "foreign": ValueError("a rule's own bug"),
    "ours": UnsupportedModelError("no kernel for this"),
    "stopped": StoppedError("stopped by hand"),
    "database": DatabaseError("the database is gone"),
    "keyboard": KeyboardInterrupt(),
}


@transformation
def raising(mod: IRModule, error: str) -> IRModule:
    """Always raises."""
    raise ERRORS[error]


@constraint
def raising_constraint(mod: IRModule) -> bool:
    """Always raises."""
    raise ERRORS["foreign"]


@register_pass
@dataclass(frozen=True)
class RaiseOn(ModulePass, opt_level=0):
    """Raises for programs with a decision."""

    value: str | None = "on"
    error: str = "foreign"

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if mod.attrs.get("parallel") == self.value:
            raise ERRORS[self.error]
        return decided(mod, "behind", "yes")


@dataclass(frozen=True)
class Given(TuningPass):
    """Decides on the choices that it is given."""

    choices: tuple[tuple[str, Choice], ...] = ()

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        return [Instruction("given", dict(self.choices))]


def given(**choices: Choice) -> Given:
    return Given(choices=tuple(choices.items()))


FINE = Choice(decided, {"what": "fact", "value": "fine"})


def run(item: TuningPass, cost: float = 1.0) -> tuple[IRModule, TuningContext]:
    ctx = TuningContext(CostTable(lambda _: cost))
    return item(program(), ctx), ctx


class TestCosts:
    @NO_COSTS
    def test_what_is_no_cost_never_wins(self, number: float) -> None:
        costs = {"0": 3.0, "1": number, "2": 2.0}
        ctx = TuningContext(CostTable(lambda mod: costs[str(mod.attrs["fact"])]))
        best = Deciding(values=tuple(costs))(program(), ctx)
        assert best.attrs["fact"] == "2"
        failed = ctx.node.children[0].children[1].trace
        assert failed is not None
        assert failed.fate

    @NO_COSTS
    def test_an_evaluation_that_is_no_cost_has_failed(self, number: float) -> None:
        assert Evaluation(number).perf == inf
        assert not Evaluation(number).is_ok
        assert f"its cost is {number:g}" in Evaluation(number).fate
        assert Evaluation(number, "broken").fate == "broken"
        assert Evaluation(0.0).is_ok

    @NO_COSTS
    def test_traces_without_a_cost_are_not_selected(self, number: float) -> None:
        wrong, right = Trace(program()), Trace(program())
        wrong.perf, right.perf = number, 5.0
        assert select_best_candidate([wrong, right]) is right
        assert wrong.has_failed
        assert query_cost_model(lambda _: number, right) == inf

    @NO_COSTS
    @pytest.mark.parametrize(
        "strategy",
        [
            Beam(),
            EvolutionarySearch(),
            Exhaustive(),
            Greedy(),
            IntegerProgram(),
            RandomSearch(),
            SimulatedAnnealing(),
        ],
        ids=lambda strategy: type(strategy).__name__,
    )
    def test_no_strategy_is_misled(self, strategy: Strategy, number: float) -> None:
        costs = {"ax": 2.0, "ay": number, "az": 1.0, "bx": 3.0, "by": 5.0, "bz": 2.5}
        trials = Trials((("a", "b"), ("x", "y", "z")), lambda points: [costs["".join(p)] for p in points])
        assert strategy.search(trials) == ("a", "z")

    def test_a_walk_over_free_points_ends(self) -> None:
        """A cost of 0 is allowed; the ratio to it is not."""
        trials = Trials((("a", "b"), ("x", "y")), lambda points: [float(p[0] == "b") for p in points])
        assert SimulatedAnnealing(steps=30).search(trials)[0] == "a"


class TestRaising:
    @pytest.mark.parametrize("error", ["foreign", "ours"])
    def test_a_transformation_that_raises_has_failed(self, error: str) -> None:
        after, ctx = run(given(broken=Choice(raising, {"error": error}), fine=FINE))
        assert after.attrs["fact"] == "fine"
        reason = {"foreign": "ValueError: a rule's own bug", "ours": "no kernel for this"}[error]
        assert f"broken: {reason}" in str(ctx.node)
        assert ctx.num_evals == 1, "what could not be made is not evaluated"

    def test_so_has_one_whose_constraint_raises(self) -> None:
        broken = Choice(decided, {"what": "a", "value": "b"}, "raising_constraint")
        after, ctx = run(given(broken=broken, fine=FINE))
        assert after.attrs["fact"] == "fine"
        assert "broken: ValueError: a rule's own bug" in str(ctx.node)

    def test_candidates_of_a_loop_of_ones_own_are_failed_too(self) -> None:
        choices = {"broken": Choice(raising, {"error": "ours"}), "fine": FINE}
        ctx = TuningContext(CostTable())
        broken, fine = generate_candidates(Instruction("given", choices), Trace(program()), ctx)
        assert (broken.cost, broken.fate, fine.perf) == (inf, "no kernel for this", None)

    @pytest.mark.parametrize("error", ["stopped", "database", "keyboard"])
    def test_what_is_no_fault_of_a_candidate_ends_the_run(self, error: str) -> None:
        with pytest.raises(type(ERRORS[error])):
            run(given(broken=Choice(raising, {"error": error}), fine=FINE))

    @pytest.mark.parametrize(
        ("choice", "message"),
        [
            (Choice("no_such_thing"), "unknown transformation 'no_such_thing'"),
            (Choice("FoldConstant", {"no_option": 1}), "pass 'FoldConstant' cannot be made"),
            (Choice(constraint="no_constraint"), "no constraint 'no_constraint'|unknown constraint"),
        ],
        ids=["transformation", "option", "constraint"],
    )
    def test_unknown_names_are_mistakes_of_the_pass(self, choice: Choice, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            run(given(wrong=choice, fine=FINE))

    def test_an_eval_pass_that_raises_fails_that_candidate_only(self) -> None:
        after, ctx = run(parallel(RaiseOn()))  # type: ignore[arg-type]  # heuristic passes are eval passes too
        assert (after.attrs["parallel"], after.attrs["behind"]) == ("off", "yes")
        assert "on: ValueError: a rule's own bug" in str(ctx.node)

    def test_decisions_before_the_eval_pass_that_raises_stay_as_they_were(self) -> None:
        after, ctx = run(parallel(layout(), RaiseOn()))  # type: ignore[arg-type]  # as above
        assert after.attrs["parallel"] == "off"
        first = ctx.node.children[0].children[0]
        assert first.trace is not None
        assert first.trace.fate == "ValueError: a rule's own bug"
        assert first.children[0].best is not None
        assert not first.children[0].best.has_failed

    def test_an_eval_pass_is_stopped_by_hand(self) -> None:
        with pytest.raises(StoppedError):
            run(parallel(RaiseOn(error="stopped")))  # type: ignore[arg-type]  # as above

    def test_a_part_whose_passes_raise_stays_as_it_is(self) -> None:
        mod = layers(3)
        ctx = TuningContext(CostTable())
        after = TuneSubgraphs(passes=(RaiseOn(value=None),))(mod, ctx)
        assert structural_equal(after, mod)
        part = ctx.node.children[0].children[0].trace
        assert part is not None
        assert part.fate == "ValueError: a rule's own bug"

    def test_a_program_that_cannot_be_placed_has_failed(self) -> None:
        whole = Instruction("whole", {"broken": Choice(raising, {"error": "ours"})})
        judge = CostTable()
        evaluator = WholeEvaluator(judge, Target.for_toolchain("reference"), whole, "broken")
        (found,) = evaluator.evaluate([Trace(program())])
        assert (found.perf, found.fate, found.is_new) == (inf, "no kernel for this", False)
        assert not judge.modules


class TestNothingWorks:
    def test_the_program_stays_as_it_is_and_the_tree_says_why(self) -> None:
        mod = program()
        ctx = TuningContext(CostTable(lambda _: inf))
        assert Deciding()(mod, ctx) is mod
        line = next(line for line in str(ctx.node).splitlines() if "Deciding" in line)
        assert line == "  Deciding: no candidate works (planned to fail): the program stays as it is"
        assert "chosen" not in str(ctx.node)
        assert ctx.node.children[0].to_json()["remark"].startswith("no candidate works")

    def test_if_all_transformations_raise(self) -> None:
        after, ctx = run(given(one=Choice(raising, {"error": "ours"})))
        assert "fact" not in after.attrs
        assert "no candidate works (no kernel for this)" in str(ctx.node)

    def test_a_trace_gets_no_decision(self) -> None:
        ctx = TuningContext(CostTable(lambda _: inf)).recording(Trace(program()))
        Deciding()(ctx.trace.tuned.out_mod, ctx)  # type: ignore[union-attr]  # a recorder
        assert ctx.trace.tuned.steps == ()  # type: ignore[union-attr]  # as above

    def test_a_loop_of_ones_own_gets_the_same_treatment(self) -> None:
        @dataclass(frozen=True)
        class Own(TuningPass, name="Own"):
            def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
                choices = Instruction("given", {"broken": Choice(raising, {"error": "ours"})})
                return select_best_candidate(generate_candidates(choices, trace, ctx))

        mod = program()
        assert Own()(mod, TuningContext(CostTable())) is mod

    def test_inside_another_pass_the_outer_candidate_is_still_evaluated(self) -> None:
        """Nothing that the inner pass tries works, but the program without it does."""
        ctx = TuningContext(CostTable(lambda mod: inf if "layout" in mod.attrs else 1.0))
        after = parallel(layout())(program(), ctx)
        assert after.attrs["parallel"] == "on"
        assert "layout" not in after.attrs

    def test_a_program_that_fails_by_itself_can_still_be_mended(self) -> None:
        ctx = TuningContext(CostTable(lambda mod: 1.0 if mod.attrs.get("fact") == "1" else inf))
        after = TuneInTurns((Deciding(),))(program(), ctx)
        assert after.attrs["fact"] == "1"

    def test_a_pass_with_closed_choices_leaves_the_program(self) -> None:
        closed = Choice(decided, {"what": "x", "value": "0"}, "only_if", {"what": "first", "value": "z"})
        mod = program()
        ctx = TuningContext(CostTable())
        assert given(a=closed, b=closed)(mod, ctx) is mod
        assert "Given: no combination of given is open: the program stays as it is" in str(ctx.node)
        assert ctx.num_evals == 0
