"""Equalised layers: the same bits, equal ranges, and less error in integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.parallel_programs import image
from tests.pass_checks import assert_facts_kept, checked
from tests.quantised_programs import program, residual_network, weights

from intarsia.ir import Call, Constant, Expr, IRModule
from intarsia.measure.inputs import random_inputs
from intarsia.op import call
from intarsia.passes import AnnotateQuantization, EqualizeLayers, RealizeQuantization
from intarsia.passes.quantise.channel_scaling import scalable_values
from intarsia.passes.quantise.heavy_layer import heavy_layers, top_level
from intarsia.passes.quantise.weight_channels import input_ranges, output_ranges
from intarsia.tune.passes import CalibrateQuantization
from intarsia.tune.quantise.output_error import relative_error
from intarsia.tune.quantise.program_runner import running_program

REFERENCE = ("reference",)


def uneven(*shape: int, axis: int = 0, seed: int = 0) -> Constant:
    """Weights whose ranges along an axis differ by up to 2 ** 6."""
    rng = np.random.default_rng([seed, *shape])
    factors = np.exp2(rng.uniform(-3, 3, shape[axis]))
    along = factors.reshape(tuple(-1 if number == axis else 1 for number in range(len(shape))))
    return Constant((rng.standard_normal(shape) * along).astype(np.float32))


def same_bits(before: IRModule) -> IRModule:
    """The program after the pass; fails unless it computes the same bits."""
    after = checked(EqualizeLayers(), before, rtol=0.0, atol=0.0)
    assert after is not before
    return after


def block(x: Expr, *, group: int = 1) -> Call:
    hidden = call("Conv", x, uneven(8, 4, 3, 3), weights(8, seed=1), pads=(1, 1, 1, 1))
    pooled = call("MaxPool", call("Relu", hidden), kernel_shape=(2, 2), strides=(2, 2))
    return call("Conv", pooled, uneven(6, 8 // group, 1, 1, axis=0, seed=2), group=group)


@pytest.mark.parametrize("group", [1, 2])
def test_ranges_before_and_after_a_value_are_equal(group: int) -> None:
    after = same_bits(program(block(image(1, 4, 6, 6), group=group)))
    first, second = heavy_layers(top_level(after["main"].body))
    sizes = [np.abs(layer.weight.data) for layer in (first, second)]
    ratios = np.log2(output_ranges(first, sizes[0]) / input_ranges(second, sizes[1]))
    assert np.abs(ratios).max() <= 1.0, "powers of two leave half an exponent on each side"


def test_a_depthwise_layer_between_takes_part_in_both_pairs() -> None:
    x = image(1, 4, 6, 6)
    first = call("Relu", call("Conv", x, uneven(8, 4, 1, 1)))
    depthwise = call("Relu", call("Conv", first, uneven(8, 1, 3, 3, seed=1), group=8))
    after = same_bits(program(call("Conv", depthwise, uneven(3, 8, 1, 1, axis=1, seed=2))))
    layers = heavy_layers(top_level(after["main"].body))
    sizes = [np.abs(layer.weight.data) for layer in layers]
    for number in (0, 1):
        before = output_ranges(layers[number], sizes[number])
        behind = input_ranges(layers[number + 1], sizes[number + 1])
        assert np.abs(np.log2(before / behind)).max() <= 1.0 + 1e-6


def test_a_transposed_convolution_between_convolutions() -> None:
    first = call("Relu", call("Conv", image(1, 4, 6, 6), uneven(8, 4, 1, 1)))
    enlarged = call("ConvTranspose", first, uneven(8, 6, 2, 2, axis=1, seed=1), weights(6), strides=(2, 2))
    after = same_bits(program(call("Conv", call("Relu", enlarged), uneven(3, 6, 1, 1, axis=1, seed=2))))
    layers = heavy_layers(top_level(after["main"].body))
    sizes = [np.abs(layer.weight.data) for layer in layers]
    for number in (0, 1):
        before = output_ranges(layers[number], sizes[number])
        behind = input_ranges(layers[number + 1], sizes[number + 1])
        assert np.abs(np.log2(before / behind)).max() <= 1.0 + 1e-6


def test_a_classifier_behind_a_pool_and_two_readers() -> None:
    x = image(2, 4, 6, 6)
    pooled = call("GlobalAveragePool", call("Relu", call("Conv", x, uneven(8, 4, 3, 3), weights(8))))
    flat = call("Flatten", pooled)
    results = [call("Gemm", flat, uneven(5, 8, axis=1, seed=seed), weights(5), transB=1) for seed in (1, 2)]
    after = same_bits(program(*results))
    (value, *_) = scalable_values(after["main"].body)[1:]
    assert len(value.readers) == 2


def test_a_bias_as_a_sum() -> None:
    hidden = call("Add", call("MatMul", image(2, 4), uneven(4, 8, axis=1)), weights(8))
    same_bits(program(call("MatMul", call("Relu", hidden), uneven(8, 3, seed=1))))


@pytest.mark.parametrize("name", ["Sigmoid", "Clip", "Tanh"])
def test_what_does_not_pass_scaled_channels_on(name: str) -> None:
    limits = (Constant(np.array(0, np.float32)), Constant(np.array(6, np.float32))) if name == "Clip" else ()
    hidden = call(name, call("MatMul", image(2, 4), uneven(4, 8, axis=1)), *limits)
    mod = program(call("MatMul", hidden, uneven(8, 3)))
    assert EqualizeLayers()(mod) is mod


def test_values_with_other_readers_stay() -> None:
    hidden = call("Relu", call("MatMul", image(2, 4), uneven(4, 8, axis=1)))
    mod = program(call("MatMul", hidden, uneven(8, 3)), hidden)
    assert EqualizeLayers()(mod) is mod
    joined = residual_network()
    assert EqualizeLayers()(joined) is joined or "Add" in str(EqualizeLayers()(joined))


def test_channels_without_weights_stay() -> None:
    first = uneven(4, 8, axis=1).data.copy()
    first[:, 2] = 0
    second = uneven(8, 3).data.copy()
    second[5] = 0
    hidden = call("Relu", call("MatMul", image(2, 4), Constant(first)))
    after = same_bits(program(call("MatMul", hidden, Constant(second))))
    layers = heavy_layers(top_level(after["main"].body))
    np.testing.assert_array_equal(layers[0].weight.data[:, [2, 5]], first[:, [2, 5]])
    np.testing.assert_array_equal(layers[1].weight.data[[2, 5]], second[[2, 5]])


def test_facts_are_kept_and_annotated_programs_stay() -> None:
    mod = program(block(image(1, 4, 6, 6)))
    assert_facts_kept(EqualizeLayers(), mod)
    annotated = AnnotateQuantization()(mod)
    assert EqualizeLayers()(annotated) is annotated


@st.composite
def chains(draw: st.DrawFn) -> IRModule:
    """Convolutions in a row with activations and pools, groups, biases and residuals."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    channels = draw(st.sampled_from([4, 8]))
    value: Expr = image(1, channels, 8, 8)
    for _ in range(draw(st.integers(2, 4))):
        group = draw(st.sampled_from([1, 2, channels]))
        data = rng.standard_normal((channels, channels // group, 3, 3))
        data *= np.exp2(rng.uniform(-4, 4, (channels, 1, 1, 1)))
        bias = [Constant(rng.standard_normal(channels).astype(np.float32))] if draw(st.booleans()) else []
        before = value
        weight = Constant(data.astype(np.float32))
        value = call("Conv", value, weight, *bias, group=group, pads=(1, 1, 1, 1))
        activation = draw(st.sampled_from(["Relu", "LeakyRelu", "Identity", "Sigmoid"]))
        value = call(activation, value)
        if draw(st.booleans()):
            value = call("Add", value, before)
    return program(value)


@settings(max_examples=examples(40), deadline=None)
@given(chains())
def test_random_networks_compute_the_same_bits(mod: IRModule) -> None:
    checked(EqualizeLayers(), mod, rtol=0.0, atol=0.0)


def test_less_error_in_integers() -> None:
    """An even network whose channels were scaled apart, which changes nothing but its error in integers."""
    apart = np.exp2(np.random.default_rng(5).uniform(-4, 4, 16)).astype(np.float32)
    first, second = weights(4, 16).data * apart, weights(16, 6, seed=1).data / apart[:, np.newaxis]
    hidden = call("Relu", call("MatMul", image(8, 4), Constant(first)))
    mod = program(call("MatMul", hidden, Constant(second)))
    inputs = random_inputs(mod["main"], 0)

    def error(given_mod: IRModule) -> float:
        scaled = CalibrateQuantization()(AnnotateQuantization()(given_mod))
        quantised: Any = RealizeQuantization()(scaled)
        with running_program(quantised, REFERENCE) as run, running_program(mod, REFERENCE) as plain:
            return relative_error(plain(inputs), run(inputs))

    assert error(EqualizeLayers()(mod)) < 0.5 * error(mod)
