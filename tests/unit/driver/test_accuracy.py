"""Exact runs, and runs with a bound on the error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import intarsia as ia
from intarsia.driver.accuracy import Accuracy
from intarsia.driver.tuning_pipelines import deciding_passes
from intarsia.ir import Constant, Function, IRModule, TensorType, Var
from intarsia.measure.judge.accuracy import error_bound
from intarsia.op import call
from intarsia.support.errors import UsageError, VerificationError
from intarsia.target import Target
from intarsia.transform import Pass
from intarsia.tune.passes import TuneConvolutions, TuneKernelsJointly, TunePacking, TunePrecision, TuneWeights

pytestmark = pytest.mark.processes

NATIVE = "cpu -toolchain=native"
DIRECT = f"{NATIVE} -convolutions=direct"


def program() -> IRModule:
    """A convolution that native computes by Winograd's transforms."""
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 32, 24, 24), np.float32)))
    weight = np.random.default_rng(0).standard_normal((32, 32, 3, 3)) / 17
    return IRModule.from_expr(Function((x,), call("Conv", x, Constant(weight.astype("f4")), pads=(1,) * 4)))


def flattened(passes: Sequence[Pass]) -> list[Pass]:
    """Passes, with those inside of `TuneKernelsJointly` in its place."""
    return [
        inner
        for item in passes
        for inner in (item.passes if isinstance(item, TuneKernelsJointly) else (item,))
    ]


def test_exact_runs_compute_convolutions_directly() -> None:
    exact = Accuracy(exact=True)
    given = Target(NATIVE), Target("cpu -toolchain=onnxruntime"), Target(DIRECT)
    assert [str(each) for each in exact.targets(given)] == [DIRECT, "cpu -toolchain=onnxruntime", DIRECT]
    found = exact.passes(deciding_passes(None, None), are_given=False)
    assert not any(isinstance(item, TuneConvolutions) for item in flattened(found))
    assert any(isinstance(item, TunePacking) for item in flattened(found)), "other decisions stay"
    assert Accuracy().targets(given) == given
    assert Accuracy().passes(deciding_passes(None, None), are_given=False) == deciding_passes(None, None)


def test_what_is_not_exact_is_refused() -> None:
    exact = Accuracy(exact=True)
    with pytest.raises(UsageError, match="requests another algorithm"):
        exact.targets([Target(f"{NATIVE} -convolutions=winograd_4")])
    with pytest.raises(UsageError, match="TuneConvolutions chooses other algorithms"):
        exact.passes([TuneConvolutions()], are_given=True)
    with pytest.raises(UsageError, match="TuneConvolutions chooses other algorithms"):
        exact.passes([TuneKernelsJointly()], are_given=True)
    only_algorithms = TuneKernelsJointly(passes=(TuneConvolutions(),))
    assert exact.passes([only_algorithms], are_given=False) == ()


def test_a_bound_goes_with_the_program_and_allows_more() -> None:
    bounded = Accuracy(tolerance=0.01)
    assert error_bound(bounded.program(program())) == 0.01
    found = bounded.passes(deciding_passes(None, None), are_given=False)
    assert found[-2:] == (TuneWeights(tolerance=0.01), TunePrecision(tolerance=0.01))
    (convolutions,) = [item for item in flattened(found) if isinstance(item, TuneConvolutions)]
    assert "winograd_6" in convolutions.algorithms
    assert bounded.passes([TuneConvolutions()], are_given=True) == (TuneConvolutions(),)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, 1.0, 5.0, float("nan"), float("inf")])
def test_other_bounds_are_refused(tolerance: float) -> None:
    with pytest.raises(UsageError, match="is not between 0 and 1: it is a fraction of an output"):
        ia.tune(program(), targets=[NATIVE], tolerance=tolerance)


def test_runs_say_which_algorithm_they_chose() -> None:
    result = ia.tune(program(), budget="4s", targets=[NATIVE], exact=True)
    assert [record.name for record in result.candidates if record.chosen] == ["native convolutions=direct"]


def test_a_bound_that_nobody_keeps_is_an_error() -> None:
    with pytest.raises(VerificationError, match="no candidate computes the model right"):
        ia.tune(program(), budget="4s", targets=[NATIVE], tolerance=1e-12)
