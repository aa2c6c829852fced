"""Errors, times and borders of layers against programs with one layer in integers."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from tests.parallel_programs import image
from tests.quantised_programs import program, residual_network, weights

from intarsia.measure.inputs import random_inputs
from intarsia.op import call, verify
from intarsia.passes import AnnotateQuantization, RealizeQuantization
from intarsia.target import Target
from intarsia.tune.quantise.calibrate_quantization import calibrate, with_scales
from intarsia.tune.quantise.layer_errors import (
    SWITCHES,
    LayerErrors,
    layer_borders,
    layer_errors,
    switched_program,
)
from intarsia.tune.quantise.layer_times import precision_problem
from intarsia.tune.quantise.layer_types import LayerTypes
from intarsia.tune.quantise.output_error import relative_error
from intarsia.tune.quantise.precision_problem import LayerCost
from intarsia.tune.quantise.program_runner import running_program
from intarsia.tune.quantise.quantised import in_integers

MOD = residual_network()
INPUTS = [random_inputs(MOD["main"], seed) for seed in range(2)]
ANNOTATED = AnnotateQuantization()(MOD)
RECORD = calibrate(ANNOTATED, INPUTS)
CALIBRATED = with_scales(ANNOTATED, RECORD, "minmax")
REFERENCE = ("reference",)


def test_a_switched_program_is_float32_with_all_switches_off() -> None:
    switched = switched_program(CALIBRATED)
    verify(switched)
    with running_program(switched, REFERENCE) as run, running_program(MOD, REFERENCE) as plain:
        found = run({**INPUTS[0], SWITCHES: np.zeros(3, np.bool_)})
        np.testing.assert_array_equal(found[0], plain(INPUTS[0])[0])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_error_of_a_layer_is_that_of_a_program_with_it_alone_in_integers(number: int) -> None:
    alone = with_scales(AnnotateQuantization(layers=(number,))(MOD), RECORD, "minmax")
    realized = RealizeQuantization(corrects_bias=False)(alone)
    with running_program(realized, REFERENCE) as run, running_program(MOD, REFERENCE) as plain:
        errors = [relative_error(plain(item), run(item)) ** 2 for item in INPUTS]
    # Biases are rounded in one program and not in the other.
    assert layer_errors(CALIBRATED, INPUTS).int8[number] == pytest.approx(np.mean(errors), rel=0.05)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_error_of_a_layer_in_bfloat16_is_that_of_a_program_with_it_alone(number: int) -> None:
    alone = in_integers(MOD, RECORD, LayerTypes(bfloat16=frozenset({number})))
    with running_program(alone, REFERENCE) as run, running_program(MOD, REFERENCE) as plain:
        errors = [relative_error(plain(item), run(item)) ** 2 for item in INPUTS]
    predicted = layer_errors(CALIBRATED, INPUTS, with_bfloat16=True).bfloat16[number]
    # The program rounds its bias, and what follows the layer, as well.
    assert 0.2 < predicted / np.mean(errors) < 2.0


@pytest.mark.parametrize("toolchain", ["reference", "native", "openvino"])
def test_a_program_of_three_types_computes_nearly_the_same(toolchain: str) -> None:
    mixed = in_integers(MOD, RECORD, LayerTypes(frozenset({0}), frozenset({2})))
    verify(mixed)
    text = str(mixed)
    assert text.count("QuantizeLinear(%x") == 1
    assert "MatMul(%" in text
    assert text.count("to=16") == 1
    with running_program(mixed, (toolchain,)) as run, running_program(MOD, REFERENCE) as plain:
        assert 1e-4 < relative_error(plain(INPUTS[0]), run(INPUTS[0])) < 0.05


def test_times_in_bfloat16_are_a_choice_where_the_toolchain_runs_it() -> None:
    layer = program(call("MatMul", image(2, 4), weights(4, 4)))
    errors = LayerErrors((0.1,), (0.2,))
    ticks = count()
    problem = precision_problem(
        AnnotateQuantization()(layer), errors, Target.for_toolchain("reference"), lambda: float(next(ticks))
    )
    assert problem.layers == (LayerCost(0.1, 0.1, 0.1, 0.1, 0.2),), "all but a tenth is the call's"
    (refused,) = precision_problem(
        AnnotateQuantization()(layer), errors, Target.for_toolchain("onnxruntime")
    ).layers
    assert refused.bfloat16 == float("inf")


def test_neighbours_are_layers_without_float32_between() -> None:
    # Relu; Relu over the sum of both convolutions, with a pool before the classifier.
    assert [(first, second) for first, second, _ in layer_borders(CALIBRATED)] == [(0, 1), (0, 2), (1, 2)]
    hidden = call("Softmax", call("MatMul", image(2, 4), weights(4, 4)))
    assert layer_borders(AnnotateQuantization()(program(call("MatMul", hidden, weights(4, 4))))) == ()


def test_times_are_measured_once_for_layers_that_are_alike() -> None:
    layer = call("MatMul", call("Tanh", call("MatMul", image(2, 4), weights(4, 4))), weights(4, 4, seed=1))
    ticks = count()
    problem = precision_problem(
        AnnotateQuantization()(program(layer)),
        LayerErrors((0.1, 0.2)),
        Target.for_toolchain("reference"),
        lambda: float(next(ticks)),
    )
    assert [layer.error for layer in problem.layers] == [0.1, 0.2]
    assert {(layer.wide, layer.narrow) for layer in problem.layers} == {(0.1, 0.1)}
    assert next(ticks) == 2 * 7 * 4, "two programs of one layer, the conversion, and a call"
