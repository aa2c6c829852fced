"""TuneLayout: the layout of images is decided by cost, alone and jointly."""

from __future__ import annotations

import pytest
from tests.pass_checks import assert_same_results
from tests.tuning_passes import CostTable
from tests.unit.tune.test_trace import branches

from intarsia.ir import Function, IRModule, post_order
from intarsia.support.errors import UsageError
from intarsia.transform import get_pass
from intarsia.tune import TuningContext
from intarsia.tune.passes import TuneCombineParallel, TuneLayout


def channels_last(mod: IRModule) -> float:
    """Cheap where some operator works channels last: that is a function of its own."""
    inner = [each for each in post_order(mod["main"]) if isinstance(each, Function)]
    return 1.0 if len(inner) > 1 else 2.0


def test_the_cheapest_layout_wins() -> None:
    mod, ctx = branches(), TuningContext(CostTable(channels_last))
    after = TuneLayout()(mod, ctx)
    assert channels_last(after) == 1.0
    assert ctx.num_evals == 3
    assert_same_results(mod, after)


def test_of_equal_layouts_the_one_that_changes_nothing_wins() -> None:
    mod = branches()
    assert TuneLayout()(mod, TuningContext(CostTable())) is mod


def test_jointly_with_parallel_branches() -> None:
    ctx = TuningContext(CostTable(channels_last))
    TuneCombineParallel((TuneLayout(),), matmuls=False, min_num_branches=(2,))(branches(), ctx)
    assert ctx.num_evals == 2 * 3


def test_only_chosen_operators_are_converted() -> None:
    mod = branches()
    unchanged = TuneLayout(layouts=("NHWC",), operators=("MaxPool",))
    assert unchanged(mod, TuningContext(CostTable())) is mod


def test_mistakes_and_the_name() -> None:
    with pytest.raises(UsageError, match="layout is 'NCHW8c'"):
        TuneLayout(layouts=("none", "NCHW8c"))
    with pytest.raises(UsageError, match="no layout to choose"):
        TuneLayout(layouts=())
    assert get_pass("TuneLayout") == TuneLayout()
