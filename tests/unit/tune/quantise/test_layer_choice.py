"""Errors and borders of layers against programs with one layer in integers, and choices that are repaired."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from tests.parallel_programs import image
from tests.quantised_programs import program, residual_network, weights

from intarsia.measure.inputs import random_inputs
from intarsia.op import call, verify
from intarsia.passes import AnnotateQuantization, RealizeQuantization
from intarsia.tune.quantise.calibrate_quantization import calibrate, with_scales
from intarsia.tune.quantise.layer_choice import choose_layers
from intarsia.tune.quantise.layer_errors import SWITCHES, layer_borders, layer_errors, switched_program
from intarsia.tune.quantise.layer_times import precision_problem
from intarsia.tune.quantise.output_error import OutputError, relative_error
from intarsia.tune.quantise.precision_problem import LayerCost, PrecisionProblem
from intarsia.tune.quantise.program_runner import running_program

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
    assert layer_errors(CALIBRATED, INPUTS)[number] == pytest.approx(np.mean(errors), rel=0.05)


def test_neighbours_are_layers_without_float32_between() -> None:
    # Relu; Relu over the sum of both convolutions, with a pool before the classifier.
    assert [(first, second) for first, second, _ in layer_borders(CALIBRATED)] == [(0, 1), (0, 2), (1, 2)]
    hidden = call("Softmax", call("MatMul", image(2, 4), weights(4, 4)))
    assert layer_borders(AnnotateQuantization()(program(call("MatMul", hidden, weights(4, 4))))) == ()


def test_times_are_measured_once_for_layers_that_are_alike() -> None:
    layer = call("MatMul", call("Tanh", call("MatMul", image(2, 4), weights(4, 4))), weights(4, 4, seed=1))
    ticks = count()
    problem = precision_problem(
        AnnotateQuantization()(program(layer)), (0.1, 0.2), "reference", lambda: float(next(ticks))
    )
    assert [layer.error for layer in problem.layers] == [0.1, 0.2]
    assert {(layer.wide, layer.narrow) for layer in problem.layers} == {(1.0, 1.0)}
    assert next(ticks) == 2 * 7 * 3, "two programs of one layer, and the conversion"


def test_predictions_that_are_too_low_are_repaired() -> None:
    """The true error is four times the predicted one in power: 0.2 for each layer."""
    problem = PrecisionProblem(tuple(LayerCost(2.0, 1.0, 0.01) for _ in range(8)))
    tried: list[frozenset[int]] = []

    def measure(layers: frozenset[int]) -> OutputError:
        tried.append(layers)
        return OutputError(0.2 * len(layers) ** 0.5)

    choice = choose_layers(problem, 0.41, measure, lambda error: error.relative <= 0.41)
    assert choice is not None
    assert [len(layers) for layers in tried][:2] == [8, 4]
    assert len(choice.layers) == 4


def test_predictions_that_are_too_high_are_repaired() -> None:
    problem = PrecisionProblem(tuple(LayerCost(2.0, 1.0, 0.04) for _ in range(8)))

    def measure(layers: frozenset[int]) -> OutputError:
        return OutputError(0.1 * len(layers) ** 0.5)

    choice = choose_layers(problem, 0.4, measure, lambda error: error.relative <= 0.4)
    assert choice is not None
    assert len(choice.layers) == 8


def test_a_metric_that_refuses_lowers_the_budget() -> None:
    problem = PrecisionProblem(tuple(LayerCost(2.0, 1.0, 0.01) for _ in range(8)))

    def measure(layers: frozenset[int]) -> OutputError:
        return OutputError(0.1 * len(layers) ** 0.5, drop=0.1 * len(layers))

    choice = choose_layers(problem, 0.3, measure, lambda error: error.drop <= 0.25)
    assert choice is not None
    assert len(choice.layers) == 2
    assert choose_layers(problem, 0.3, measure, lambda error: error.drop < 0) is None
