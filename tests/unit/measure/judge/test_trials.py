"""Input sets, and what becomes of those that prove nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.onnx_models import model_of

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.examination import examine, examine_calls
from intarsia.measure.judge.numeric_check import NumericCheck
from intarsia.measure.judge.trials import Trial, trials_for
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target

pytestmark = pytest.mark.quick_tests(5)

Array = npt.NDArray[Any]


def names(trials: Sequence[Trial]) -> list[str]:
    return [str(trial.name) for trial in trials]


def table(rows: int) -> Constant:
    return Constant(np.random.default_rng(0).standard_normal((rows, 4)).astype(np.float32))


def number(value: int) -> Constant:
    return Constant(np.array(value, np.int64))


def ids(*shape: int) -> Var:
    return Var("ids", checked_type=TensorType(shape, DType.INT64))


def recommender() -> IRModule:
    x = ids(4, 3)
    offsets = Constant(np.array([[0, 10, 30]], np.int64))
    return module_of(x, call("Gather", table(60), call("Add", x, offsets)))


def counted_positions() -> IRModule:
    x = ids(2, 8)
    positions = call("Add", call("Mul", call("CumSum", x, number(1)), x), number(1))
    return module_of(x, call("Gather", table(40), positions))


def relative_positions() -> IRModule:
    x = ids(7)
    first, second = (call("Unsqueeze", x, Constant(np.array([axis], np.int64))) for axis in (0, 1))
    clipped = call("Clip", call("Sub", first, second), number(-4), number(4))
    return module_of(x, call("Gather", table(9), call("Add", clipped, number(4))))


def hashed() -> IRModule:
    x = ids(6)
    return module_of(x, call("Gather", table(50), call("Mod", call("Mul", x, number(7919)), number(50))))


def mean_of_masked() -> IRModule:
    x = ids(2, 8)
    floats = call("Cast", x, to=1)
    axes = Constant(np.array([1], np.int64))
    total = call("Clip", call("ReduceSum", floats, axes), Constant(np.array(1e-9, np.float32)))
    return module_of(x, call("Div", call("ReduceSum", call("Mul", floats, floats), axes), total))


def module_of(x: Var, result: Expr) -> IRModule:
    return IRModule.from_expr(Function((x,), result))


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "program", [recommender, counted_positions, relative_positions, hashed, mean_of_masked]
)
def test_honest_engines_pass_on_computed_indices(program: Any, seed: int) -> None:
    module = program()
    trials = trials_for(module, random_inputs(module["main"], seed), seed=seed)
    assert len(trials) == 3
    assert all(trial.gate.is_proven for trial in trials)
    passed = []
    for engine in ("onnxruntime", "openvino", "native"):
        try:
            executable = build(partition_whole(module, Target.for_toolchain(engine)))
        except IntarsiaError:  # OpenVINO has no Mod of 64 bits
            continue
        with executable:
            report = examine(executable, trials)
        assert report.passed, report.message
        passed.append(engine)
    assert {"onnxruntime", "native"} <= set(passed)


def labels() -> IRModule:
    text = (
        "g (string[6,1] x) => (int64[6,1] y) {"
        ' y = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b", "c"], values_int64s = [1, 2, 3]> (x) }'
    )
    return from_onnx(model_of(text, opset=21, imports='"ai.onnx.ml": 3'))


def logarithm() -> IRModule:
    text = "g (int32[4,8] x) => (float[4,8] y) { a = Cast<to = 1>(x) y = Log(a) }"
    return from_onnx(model_of(text))


@pytest.mark.parametrize("program", [labels, logarithm])
def test_the_first_result_for_ever_is_caught_whatever_the_inputs_are(program: Any) -> None:
    module = program()
    trials = trials_for(module, random_inputs(module["main"]))
    assert len(trials) == 3
    first = trials[0].gate.expected

    def stale(_: Mapping[str, Array]) -> Sequence[Array]:
        return [np.array(array) for array in first]

    report = examine_calls(stale, trials)
    assert not report.passed
    assert report.message.endswith("; it is the result of an earlier call: state is kept")


def test_further_ordinary_sets_stand_in_for_those_that_are_left_out() -> None:
    module = logarithm()
    trials = trials_for(module, random_inputs(module["main"]))
    assert names(trials) == ["ordinary", "ordinary 2", "ordinary 3"]
    assert trials[0].gate.reference.endswith("inputs: ordinary, ordinary 2, ordinary 3")


def test_inputs_on_which_rounding_errors_grow_are_scaled_down() -> None:
    """Sin(100 x) of x near 1000 loses all but 2 of its 7 digits in each correct engine."""
    x = Var("x", checked_type=TensorType((14, 64), DType.FLOAT32))
    module = module_of(x, call("Sin", call("Mul", x, Constant(np.array(100.3, np.float32)))))
    trials = trials_for(module, random_inputs(module["main"]))
    assert names(trials) == ["ordinary", "large", "edges"]
    (check,) = trials[2].gate.checks
    assert isinstance(check, NumericCheck)
    assert check.disagreement < 1e-3
    assert 1 < np.abs(trials[2].inputs["x"]).max() < 100


def test_integers_that_are_computed_as_float64_are_caught() -> None:
    x = Var("ids", checked_type=TensorType((64, 16), DType.INT64))
    module = module_of(x, call("Add", x, number(3)))
    trials = trials_for(module, random_inputs(module["main"]))
    assert examine_calls(lambda inputs: [inputs["ids"] + 3], trials).passed

    def through_float(inputs: Mapping[str, Array]) -> Sequence[Array]:
        with np.errstate(invalid="ignore"):
            return [(inputs["ids"].astype(np.float64) + 3).astype(np.int64)]

    assert not examine_calls(through_float, trials).passed
