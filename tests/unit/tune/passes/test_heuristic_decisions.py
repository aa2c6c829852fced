"""Whether heuristic passes run, and in which order, as decisions."""

from __future__ import annotations

import json

import pytest
from tests.parallel_programs import convolutions, image
from tests.parallel_programs import program as results_of
from tests.tuning_passes import CostTable, NoteHeuristic, layout, program

from intarsia.ir import IRModule, structural_equal
from intarsia.op import call
from intarsia.passes import InferType
from intarsia.support.errors import UsageError
from intarsia.transform import Sequential, get_pass
from intarsia.tune import Trace, TuningContext
from intarsia.tune.passes import TuneOrder, TuneSwitches
from intarsia.tune.strategy import DynamicProgramming

COMBINE, FOLD = get_pass("CombineParallelConv2D", min_num_branches=2), get_pass("SimplifyExpr")


def branches() -> IRModule:
    x = image()
    twice = [call("Relu", call("Relu", each)) for each in convolutions(x)]
    return InferType()(results_of(x, *twice))


def cost(mod: IRModule) -> float:
    text = str(mod)
    return 10.0 - 5 * ("Split" in text) + text.count("Relu(")


def test_switches_find_what_pays() -> None:
    ctx = TuningContext(CostTable(cost))
    passes = (COMBINE, FOLD, NoteHeuristic())
    best = TuneSwitches(passes=passes).tune(Trace(branches()), ctx)
    assert [step.decision for step in best.steps] == ["On", "On", "Off"]
    assert ctx.num_evals == 8
    assert structural_equal(Trace.from_json(best.to_json(), branches()).out_mod, best.out_mod)


def test_switches_take_a_strategy() -> None:
    ctx = TuningContext(CostTable(cost))
    best = TuneSwitches(passes=(COMBINE, FOLD), strategy=DynamicProgramming())(branches(), ctx)
    assert cost(best) == min(map(cost, (best, branches())))


def test_the_order_that_pays_is_found() -> None:
    yes, no = NoteHeuristic(value="yes"), NoteHeuristic(value="no")
    table = CostTable(lambda mod: 1.0 if mod.attrs["heuristic"] == "yes" else 2.0)
    ctx = TuningContext(table)
    best = TuneOrder(passes=(yes, no)).tune(Trace(program()), ctx)
    assert best.out_mod.attrs["heuristic"] == "yes"
    assert json.loads(best.to_json())
    assert structural_equal(best.replay(), best.out_mod)


def test_orders_with_one_result_are_measured_once() -> None:
    ctx = TuningContext(CostTable(cost))
    passes = (COMBINE, FOLD, get_pass("EliminateCommonSubexpr"))
    TuneOrder(passes=passes)(branches(), ctx)
    assert ctx.counts.proposed == 6
    assert ctx.counts.measured < 6


@pytest.mark.parametrize("kind", [TuneSwitches, TuneOrder])
def test_what_cannot_be_decided_is_refused(kind: type[TuneSwitches | TuneOrder]) -> None:
    with pytest.raises(UsageError, match="no pass to decide about"):
        kind()
    with pytest.raises(UsageError, match="decides by itself"):
        kind(passes=(layout(),))
    with pytest.raises(UsageError, match="is no single pass"):
        kind(passes=(Sequential([COMBINE]),))


def test_too_many_orders_are_refused() -> None:
    with pytest.raises(UsageError, match="7 passes have too many orders"):
        TuneOrder(passes=(COMBINE,) * 7)
