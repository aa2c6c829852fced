"""In how many bytes weights are stored, as a decision."""

from __future__ import annotations

import numpy as np
import pytest
from tests.replayed_traces import replayed_digest
from tests.tuning_passes import CostTable

from intarsia.build import build
from intarsia.ir import Constant, Function, IRModule, TensorType, Var, structural_digest
from intarsia.measure.judge.accuracy import error_bound
from intarsia.op import call
from intarsia.passes import PartitionWhole
from intarsia.support.errors import UsageError
from intarsia.tune import Trace, TuningContext
from intarsia.tune.passes import TuneWeights
from intarsia.tune.target_options import marked_functions

NATIVE = "cpu -toolchain=native"


def program() -> IRModule:
    """A product of one row, whose matrix has more than 1 MiB."""
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 600), np.float32)))
    weight = np.random.default_rng(0).standard_normal((600, 500)) / 25
    return IRModule.from_expr(Function((x,), call("MatMul", x, Constant(weight.astype("f4")))))


def given() -> IRModule:
    """The program given to native."""
    return PartitionWhole(NATIVE)(program())


def storages(mod: IRModule) -> list[str]:
    return [each.target.option("weights", "f32") for each in marked_functions(mod)]


def context(best: str) -> TuningContext:
    """A program costs least with one type as the option."""
    return TuningContext(CostTable(lambda mod: 1.0 if best in storages(mod) else 2.0))


def test_only_types_within_the_bound_are_tried() -> None:
    for tolerance, expected in ((1e-2, {"f16", "bf16", "int8"}), (1e-3, {"f16"}), (1e-4, set[str]())):
        (found,) = TuneWeights(tolerance=tolerance).instructions(Trace(given()), context(""))
        assert set(found.decisions) == {"as it is", *expected}


@pytest.mark.slow
def test_the_best_carries_the_bound_and_is_replayed() -> None:
    best = TuneWeights(tolerance=1e-2).tune(Trace(given()), context("int8"))
    assert storages(best.out_mod) == ["int8"]
    assert error_bound(best.out_mod) == 1e-2
    assert replayed_digest(best, __name__, "given") == structural_digest(best.out_mod)


def test_a_program_that_gives_nothing_to_anybody_is_one_for_the_target() -> None:
    found = TuneWeights(tolerance=1e-2, target=NATIVE)(program(), context("f16"))
    assert storages(found) == ["f16"]
    other = PartitionWhole("cpu -toolchain=reference")(program())
    (left,) = TuneWeights(tolerance=1e-2).instructions(Trace(other), context(""))
    assert left.decisions == ("as it is",)


@pytest.mark.parametrize(("storage", "error"), [("f16", 1e-3), ("bf16", 8e-3), ("int8", 8e-3)])
def test_programs_compute_about_the_same(storage: str, error: float) -> None:
    mod = TuneWeights(tolerance=1e-2, target=NATIVE)(program(), context(storage))
    data = np.random.default_rng(1).standard_normal((1, 600)).astype(np.float32)
    with build(mod) as found, build(program()) as expected:
        left, right = np.asarray(found.run_flat(data)[0]), np.asarray(expected.run_flat(data)[0])
    assert 0 < np.abs(left - right).max() <= error * np.abs(right).max()


def test_a_bound_is_positive() -> None:
    with pytest.raises(UsageError, match="the error bound is 0"):
        TuneWeights(tolerance=0)
