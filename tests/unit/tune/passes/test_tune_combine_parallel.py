"""TuneCombineParallel: which branches are combined is decided by cost."""

from __future__ import annotations

from typing import Any

import pytest
from tests.pass_checks import assert_same_results, operator_counts
from tests.tuning_passes import CostTable
from tests.unit.tune.test_trace import branches

from intarsia.support.errors import UsageError
from intarsia.transform import get_pass
from intarsia.tune import Trace, TuningContext
from intarsia.tune.passes import TuneCombineParallel
from intarsia.tune.strategy import SearchLimits


def test_it_combines_where_that_is_cheaper() -> None:
    mod = branches()
    ctx = TuningContext(CostTable(lambda each: float(operator_counts(each)["Conv"])))
    after = TuneCombineParallel()(mod, ctx)
    assert operator_counts(after)["Conv"] == 1 < operator_counts(mod)["Conv"]
    assert ctx.counts.proposed == 3 * 3
    assert ctx.counts.measured == 2  # there are three convolutions and no product
    assert_same_results(mod, after)


def test_with_few_trials_the_estimate_decides_what_is_measured() -> None:
    mod = branches()
    evaluator = CostTable(lambda each: float(operator_counts(each)["Conv"]))
    after = TuneCombineParallel(limits=SearchLimits(trials=2))(mod, TuningContext(evaluator))
    assert operator_counts(after)["Conv"] == 1, "the second combination in order combines products only"
    assert len(evaluator.modules) == 2


def test_what_does_not_pay_is_left() -> None:
    mod = branches()
    assert TuneCombineParallel()(mod, TuningContext(CostTable())) is mod


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"CombineParallelConv2D": 3, "CombineParallelMatMul": 3}),
        ({"matmuls": False}, {"CombineParallelConv2D": 3}),
        ({"convolutions": False, "min_num_branches": [2]}, {"CombineParallelMatMul": 2}),
    ],
    ids=str,
)
def test_its_decisions(options: dict[str, Any], expected: dict[str, int]) -> None:
    mod = branches()
    found = TuneCombineParallel(**options).instructions(Trace(mod), TuningContext(CostTable()))
    assert {each.name: len(each.decisions) for each in found} == expected
    assert {each.decisions[0] for each in found} == {"Off"}


def test_mistakes_and_the_name() -> None:
    with pytest.raises(UsageError, match="nothing to combine"):
        TuneCombineParallel(convolutions=False, matmuls=False)
    with pytest.raises(UsageError, match="expected 2 or more"):
        TuneCombineParallel(min_num_branches=(1,))
    assert get_pass("TuneCombineParallel") == TuneCombineParallel()
