"""Whether heuristic passes run, as decisions."""

from __future__ import annotations

import pytest
from tests.parallel_programs import convolutions, image
from tests.parallel_programs import program as results_of
from tests.tuning_passes import CostTable, NoteHeuristic, layout

from intarsia.ir import IRModule, structural_equal
from intarsia.op import call
from intarsia.passes import InferType
from intarsia.support.errors import UsageError
from intarsia.transform import Sequential, get_pass
from intarsia.tune import Trace, TuningContext
from intarsia.tune.passes import TuneSwitches
from intarsia.tune.strategy import IntegerProgram

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
    best = TuneSwitches(passes=(COMBINE, FOLD), strategy=IntegerProgram())(branches(), ctx)
    assert cost(best) == min(map(cost, (best, branches())))


def test_what_cannot_be_decided_is_refused() -> None:
    with pytest.raises(UsageError, match="no pass to decide about"):
        TuneSwitches()
    with pytest.raises(UsageError, match="decides by itself"):
        TuneSwitches(passes=(layout(),))
    with pytest.raises(UsageError, match="is no single pass"):
        TuneSwitches(passes=(Sequential([COMBINE]),))
