"""Weights are drawn by role, from their own generators."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from onnx import ModelProto
from onnx.numpy_helper import to_array

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.moments import LSTM, Moments, swish
from intarsia.frontend.zoo.weights import GATE_VARIANCE, RECURRENT_VARIANCE, SWISH_SCALE, Normal, draw

PINNED = "b1d0069af6a7a7a184624ab5b7f030e8bd96a83fa96358526b16f3e099a2f09a"


def small_network(seed: int, *, longer: bool = False) -> ModelProto:
    net = GraphWriter("small")
    x = net.input("image", (1, 16, 10, 10))
    with net.scope("block"):
        x = net.relu(net.batch_norm(net.conv(x, (16, 64), 3), 64))
    with net.scope("last"):
        x = net.conv(x, (64, 64), 1)
        if longer:
            x = net.relu(net.batch_norm(x, 64))
        net.output(net.node("Neg", x, name="negative"), "y", (1, 64, 8, 8))
    return net.finish(seed)


def weights(model: ModelProto) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return {tensor.name: to_array(tensor) for tensor in model.graph.initializer}


def test_contractions_are_scaled_by_fan_in_and_by_the_mean_square_of_their_input() -> None:
    drawn = weights(small_network(0))
    assert drawn["block/conv.weight"].std() == pytest.approx((16 * 9) ** -0.5, rel=0.05)
    assert drawn["last/conv.weight"].std() == pytest.approx((64 * 0.5) ** -0.5, rel=0.05)


def test_normalisations_are_near_the_identity() -> None:
    drawn = weights(small_network(0))
    for part, mean in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
        values = drawn[f"block/batch_norm.{part}"]
        assert values.mean() == pytest.approx(mean, abs=0.03)
        assert 0.03 < values.std() < 0.07


def test_gates_are_near_a_half_and_swishes_nearly_linear() -> None:
    net = GraphWriter("gated")
    x = net.swish(net.batch_norm(net.input("image", (1, 64, 10, 10)), 64))
    x = net.node("GlobalAveragePool", x, name="pool")
    x = net.swish(net.conv(x, (64, 64), 1, name="squeeze"), name="squeezed")
    gate = net.node("Sigmoid", net.conv(x, (64, 64), 1, name="excite"), name="gate")
    net.output(gate, "y", (1, 64, 1, 1))
    drawn = weights(net.finish(0))

    assert drawn["batch_norm.weight"].mean() == pytest.approx(SWISH_SCALE.mean, abs=0.03)
    pooled = swish(Moments(0.0, 0.0925 * 1.005)).pooled
    assert pooled is not None
    assert drawn["squeeze.weight"].std() == pytest.approx((64 * pooled) ** -0.5, rel=0.1)
    expected = (GATE_VARIANCE / (64 * swish(Moments(0.0, 1.0)).square)) ** 0.5
    assert drawn["excite.weight"].std() == pytest.approx(expected, rel=0.05)


def test_states_of_an_lstm_add_little_to_what_its_gates_are_computed_from() -> None:
    net = GraphWriter("recurrent")
    x = net.lstm(net.input("tokens", (8, 1, 64)), (64, 32))
    net.output(x, "states", (8, 1, 32))
    drawn = weights(net.finish(0))

    assert drawn["lstm.weight"].std() == pytest.approx(((1 - RECURRENT_VARIANCE) / 64) ** 0.5, rel=0.05)
    expected = (RECURRENT_VARIANCE / (32 * LSTM.square)) ** 0.5
    assert drawn["lstm.recurrent_weight"].std() == pytest.approx(expected, rel=0.05)
    assert drawn["lstm.bias"].std() == pytest.approx(0.05, rel=0.15)


@pytest.mark.parametrize(("kernel", "square"), [(3, 4.0), (1, 2.0)])
def test_two_branches_that_compute_the_same_add_up(kernel: int, square: float) -> None:
    net = GraphWriter("branches")
    x = net.input("image", (1, 64, 8, 8))
    one = net.average_pool(x, 3, pad=1, name="one")
    other = net.average_pool(x, kernel, pad=kernel // 2, name="other")
    x = net.conv(net.node("Add", one, other, name="sum"), (64, 64), 1)
    net.output(x, "y", (1, 64, 8, 8))

    drawn = weights(net.finish(0))
    assert drawn["conv.weight"].std() == pytest.approx((64 * square) ** -0.5, rel=0.05)


def test_a_weight_depends_on_its_own_name_only() -> None:
    short, long = weights(small_network(0)), weights(small_network(0, longer=True))
    assert len(long) > len(short)
    for name, values in short.items():
        np.testing.assert_array_equal(values, long[name])


def test_samples_are_pinned() -> None:
    data = draw(Normal(1.0, 0.5), 1000, seed=7, name="block/conv.weight")
    # A change here changes the weights of every zoo model: results recorded earlier no longer compare.
    assert hashlib.sha256(data).hexdigest() == PINNED
