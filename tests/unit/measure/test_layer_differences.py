"""Values inside programs as outputs, and the first wrong one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.faulty_toolchains import WrongTanh
from tests.onnx_models import model_of

from intarsia import from_onnx
from intarsia.build import build
from intarsia.ir import IRModule
from intarsia.measure.judge.gate import Gate, run_arrays
from intarsia.measure.layer_differences import LayeredProgram, layer_differences, relative_difference
from intarsia.passes import partition_whole
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import UnsupportedModelError
from intarsia.target import Target

X = {"x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)}


def module(body: str, results: str = "float[2,3] y") -> IRModule:
    return from_onnx(model_of(f"g (float[2,3] x) => ({results}) {{ {body} }}", k=np.float32(2)))


CHAIN = module("[first] a = Exp(x) [second] b = Tanh(a) [last] y = Add(b, a)")


def test_all_values_are_outputs_and_results_are_no_further_ones() -> None:
    program = LayeredProgram.of(CHAIN)
    assert [(layer.name, layer.operator, layer.output) for layer in program.layers] == [
        ("first", "Exp", 1),
        ("second", "Tanh", 2),
        ("last", "Add", 0),
    ]
    first, second, last = (build(program.module).run_flat(X["x"])[n] for n in (1, 2, 0))
    np.testing.assert_allclose(np.asarray(second), np.tanh(np.asarray(first)), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(last), np.asarray(build(CHAIN)(X["x"])))


def test_several_outputs_of_a_node_have_numbers_and_constants_are_left_out() -> None:
    split = module(
        "[n] m = Neg(k) [cut] a, b = Split<axis=0, num_outputs=2>(x) [last] y = Mul(a, m)", "float[1,3] y"
    )
    layers = LayeredProgram.of(split).layers
    assert [(layer.name, layer.operator) for layer in layers] == [("cut[0]", "Split"), ("last", "Mul")]


def test_a_model_that_computes_nothing_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="computes no tensor from its inputs"):
        LayeredProgram.of(module("y = Identity(k)", "float y"))


def test_a_planted_wrong_operator_is_the_first_wrong_value() -> None:
    program = LayeredProgram.of(CHAIN)
    gate = Gate.for_module(program.module, X)
    with TOOLCHAINS.holding(WrongTanh.name, WrongTanh):
        wrong = build(partition_whole(program.module, Target("cpu -toolchain=wrong_tanh")))
    differences = layer_differences(program, gate, run_arrays(wrong, X))
    assert [item.report.passed for item in differences] == [True, False, False]
    assert differences[1].report.max_rel_error == pytest.approx(0.01, rel=0.01)
    right = layer_differences(program, gate, run_arrays(build(program.module), X))
    assert all(item.report.passed for item in right)


def test_another_number_of_results() -> None:
    program = LayeredProgram.of(CHAIN)
    differences = layer_differences(program, Gate.for_module(program.module, X), [np.zeros(3, np.float32)])
    assert {item.report.message for item in differences} == {"the result has 1 values, expected 3"}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1.0, -4.0], [1.0, -3.0], 0.25),
        ([0.0, 0.0], [0.0, 0.5], 0.5),
        ([np.nan, np.inf], [np.nan, np.inf], 0.0),
        ([np.nan, 1.0], [0.0, 1.0], math.inf),
        ([1.0], [1.0, 2.0], math.inf),
        ([], [], 0.0),
        ([2 + 2j], [2 + 1j], 1 / math.sqrt(8)),
        (["a"], ["a"], 0.0),
        (["a"], ["b"], math.inf),
    ],
)
def test_relative_difference(first: list[object], second: list[object], expected: float) -> None:
    arrays = (
        np.array(value, object if value and isinstance(value[0], str) else None) for value in (first, second)
    )
    assert relative_difference(*arrays) == pytest.approx(expected)
