"""The three passes of quantisation together: scales from data, and integers that compute nearly the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.parallel_programs import image
from tests.pass_checks import operator_counts
from tests.quantised_programs import marks, program, residual_network, signal_to_noise, weights

from intarsia.ir import Call, Constant, DType, IRModule, Op, TensorType, post_order, structural_equal
from intarsia.measure.inputs import random_inputs
from intarsia.op import call, verify
from intarsia.passes import AnnotateQuantization, RealizeQuantization
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.transform import Sequential
from intarsia.tune.quantise.calibrate_quantization import CalibrateQuantization, calibration_record
from intarsia.tune.quantise.calibration_record import CalibrationRecord
from intarsia.tune.quantise.calibrators import METHODS, Array
from intarsia.tune.quantise.program_runner import running_program

LEAST_RATIO = 18.0
"""Decibels that quantising small networks of few layers leaves at least."""


def results(mod: IRModule, inputs: dict[str, Array]) -> Array:
    with running_program(mod, ("reference",)) as run:
        return np.asarray(run(inputs)[0])


def inputs_of(mod: IRModule, count: int = 4) -> list[dict[str, Array]]:
    return [random_inputs(mod["main"], seed) for seed in range(count)]


@pytest.mark.parametrize("method", METHODS)
def test_a_network_in_integers_computes_nearly_the_same(method: str) -> None:
    before = residual_network()
    inputs = inputs_of(before)
    annotated = AnnotateQuantization()(before)
    record = calibration_record(annotated, inputs[:3], method)
    calibrated = CalibrateQuantization(record=record, method=method)(annotated)
    realized = RealizeQuantization()(calibrated)
    for mod in (annotated, calibrated, realized):
        verify(mod)
    expected = results(before, inputs[3])
    np.testing.assert_allclose(results(annotated, inputs[3]), expected, rtol=1e-4, atol=1e-5)
    assert signal_to_noise(expected, results(calibrated, inputs[3])) > LEAST_RATIO
    assert signal_to_noise(expected, results(realized, inputs[3])) > LEAST_RATIO
    assert not marks(realized)
    assert operator_counts(realized)["QuantizeLinear"] == 5


def test_the_passes_alone_on_a_file(tmp_path: Path) -> None:
    before = residual_network()
    inputs = inputs_of(before)
    np.savez(tmp_path / "x.npz", x=np.stack([item["x"] for item in inputs]))
    passes = [AnnotateQuantization(), CalibrateQuantization(str(tmp_path / "x.npz")), RealizeQuantization()]
    after = Sequential(passes)(before)
    record = calibration_record(AnnotateQuantization()(before), inputs)
    again = Sequential([passes[0], CalibrateQuantization(record=record), passes[2]])(before)
    # Means in a record have fewer digits, so that biases differ; the rest is equal.
    assert operator_counts(after) == operator_counts(again)
    assert signal_to_noise(results(after, inputs[0]), results(again, inputs[0])) > LEAST_RATIO


def test_without_inputs_they_are_random_and_the_same_each_time() -> None:
    annotated = AnnotateQuantization()(residual_network())
    first, second = (CalibrateQuantization(seed=3)(annotated) for _ in range(2))
    assert structural_equal(first, second)
    assert CalibrateQuantization(seed=4)(first) is first


def test_the_record_of_ranges_reads_back() -> None:
    mod = AnnotateQuantization()(residual_network())
    text = calibration_record(mod, inputs_of(mod))
    record = CalibrationRecord.from_text(text)
    assert record.text == text
    (key,) = (mark.attrs["key"] for mark in marks(mod) if mark.args[0] is mod["main"].params[0])
    assert isinstance(key, int)
    data = np.stack([item["x"] for item in inputs_of(mod)])
    assert record.limits[key] == (float(data.min()), float(data.max()))
    expected = np.mean(data, axis=(0, 1, 3, 4))
    np.testing.assert_allclose(record.means[key], expected, rtol=0.01, atol=1e-3)


def test_integers_are_what_the_scale_of_a_layer_makes_of_it() -> None:
    """The integers of weights and biases, and what Relu becomes."""
    weight, bias = weights(2, 3, 1, 1), weights(2)
    hidden = call("Relu", call("Conv", image(1, 3, 4, 4), weight, bias))
    mod = program(call("Conv", hidden, weights(2, 2, 1, 1)))
    passes = [AnnotateQuantization(), CalibrateQuantization(), RealizeQuantization(corrects_bias=False)]
    after = Sequential(passes)(mod)
    calls = [node for node in post_order(after["main"]) if isinstance(node, Call)]
    first = next(node for node in calls if isinstance(node.op, Op) and node.op.name == "Conv")
    arguments: Any = first.args
    scale_x = arguments[0].args[1].data
    integers, scale = (arg.data for arg in arguments[1].args[:2])
    np.testing.assert_allclose(np.abs(weight.data).max(axis=(1, 2, 3)) / 127, scale, rtol=1e-6)
    np.testing.assert_array_equal(integers, np.rint(weight.data / scale[:, None, None, None]))
    sums = arguments[2].args[0].data
    assert sums.dtype == np.int32
    np.testing.assert_allclose(sums * scale * scale_x, bias.data, atol=float((scale * scale_x).max()))
    assert operator_counts(after)["Relu"] == 0, "integers are not below their zero point"


def test_correcting_the_bias_removes_the_mean_error() -> None:
    rng = np.random.default_rng(0)
    weight = Constant((rng.standard_normal((64, 4)) * 0.1).astype(np.float32))
    weight.data[0] = 3.0  # one large weight in each column: the others get few steps
    mod = program(call("Gemm", image(16, 64), weight))
    (name,) = (param.name for param in mod["main"].params)
    inputs = [{name: (rng.standard_normal((16, 64)) * 0.1 + 1).astype(np.float32)} for _ in range(4)]
    annotated = AnnotateQuantization()(mod)
    calibrated = CalibrateQuantization(record=calibration_record(annotated, inputs))(annotated)
    errors = []
    for corrects in (False, True):
        after = RealizeQuantization(corrects_bias=corrects)(calibrated)
        difference = [results(after, item) - results(mod, item) for item in inputs]
        errors.append(float(np.abs(np.concatenate(difference).mean(axis=0)).max()))
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize(("taps", "stride", "begin"), [(2, 2, 0), (4, 2, 1), (3, 1, 1), (2, 3, 0)])
def test_a_transposed_convolution_in_integers(taps: int, stride: int, begin: int) -> None:
    """Its scales belong to the second axis of its weights; its bias is corrected by the taps of a phase."""
    rng = np.random.default_rng(taps)
    weight = Constant((rng.standard_normal((64, 5, taps, taps)) * 0.1).astype(np.float32))
    weight.data[0] = 3.0  # one large weight for each output channel: the others get few steps
    weight.data[:, 1] *= 30
    strides, pads = (stride,) * 2, (begin,) * 4
    mod = program(call("ConvTranspose", image(1, 64, 9, 9), weight, weights(5), strides=strides, pads=pads))
    (name,) = (param.name for param in mod["main"].params)
    inputs = [{name: (rng.standard_normal((1, 64, 9, 9)) * 0.1 + 1).astype(np.float32)} for _ in range(3)]
    annotated = AnnotateQuantization()(mod)
    calibrated = CalibrateQuantization(record=calibration_record(annotated, inputs))(annotated)
    errors = []
    for corrects in (False, True):
        after = RealizeQuantization(corrects_bias=corrects)(calibrated)
        verify(after)
        pairs = [(results(mod, item), results(after, item)) for item in inputs]
        for channel in range(5):
            left, right = (np.stack(parts)[:, :, channel] for parts in zip(*pairs, strict=True))
            assert signal_to_noise(left, right) > LEAST_RATIO, "a channel has a scale of its own"
        inner = np.concatenate([expected - actual for expected, actual in pairs])[:, :, 3:-3, 3:-3]
        errors.append(float(np.abs(inner.mean(axis=(0, 2, 3))).max()))
    # With a stride above the taps some results are the bias alone, which then is corrected as well.
    assert errors[1] < (0.3 if taps >= stride else 1.0) * errors[0]


def test_a_bias_that_would_overflow_gets_larger_steps() -> None:
    weight = Constant(np.array([[1e-7, 1.0]], np.float32))
    mod = program(call("Gemm", image(2, 1), weight, Constant(np.array([50.0, 1.0], np.float32))))
    inputs = inputs_of(mod)
    annotated = AnnotateQuantization()(mod)
    after = RealizeQuantization()(
        CalibrateQuantization(record=calibration_record(annotated, inputs))(annotated)
    )
    np.testing.assert_allclose(results(after, inputs[0]), results(mod, inputs[0]), atol=0.05)


def test_integers_move_instead_of_floats() -> None:
    conv = call("Conv", image(1, 4, 6, 6), weights(4, 4, 1, 1))
    pooled = call("MaxPool", conv, kernel_shape=(2, 2), strides=(2, 2))
    mod = program(call("Conv", call("Transpose", pooled, perm=(0, 1, 3, 2)), weights(4, 4, 1, 1)))
    after = Sequential([AnnotateQuantization(), CalibrateQuantization(), RealizeQuantization()])(mod)
    verify(after)
    moved = [
        node
        for node in post_order(after["main"])
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in ("MaxPool", "Transpose")
    ]
    types = [node.checked_type for node in moved]
    assert [item.dtype for item in types if isinstance(item, TensorType)] == [DType.UINT8] * 2
    inputs = inputs_of(mod)[0]
    assert signal_to_noise(results(mod, inputs), results(after, inputs)) > LEAST_RATIO


def test_marks_without_scales_are_not_realized() -> None:
    with pytest.raises(UsageError, match=r"^a value is marked for quantisation, but has no scale"):
        RealizeQuantization()(AnnotateQuantization()(residual_network()))


def test_a_record_of_another_program() -> None:
    with pytest.raises(UsageError, match=r"^the record of the calibration has no range for value"):
        CalibrateQuantization(record='{"999":[0.0,1.0]}')(AnnotateQuantization()(residual_network()))
    with pytest.raises(UsageError, match=r"^a record of a calibration is malformed"):
        CalibrateQuantization(record="[1]")


def test_values_that_are_not_finite() -> None:
    mod = program(call("MatMul", call("Log", image(2, 3)), weights(3, 3)))
    annotated = AnnotateQuantization()(mod)
    (name,) = (param.name for param in mod["main"].params)
    with pytest.raises(UsageError, match="not finite on a calibration input"):
        calibration_record(annotated, [{name: np.zeros((2, 3), np.float32)}])
    with pytest.raises(UsageError, match=r"^there are no calibration inputs$"):
        calibration_record(annotated, [])


@pytest.mark.parametrize(("bias", "is_integer"), [(1.0, True), (1e9, False)])
def test_the_bias_of_a_product_is_of_integers_where_it_fits(bias: float, is_integer: bool) -> None:
    added = Constant(np.full(5, bias, np.float32))
    mod = program(call("Add", call("MatMul", image(2, 3), weights(3, 5)), added))
    after = Sequential([AnnotateQuantization(), CalibrateQuantization(), RealizeQuantization()])(mod)
    (total,) = (
        node.args[1]
        for node in post_order(after["main"])
        if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name == "Add"
    )
    assert isinstance(total, Call) == is_integer
    inputs = inputs_of(mod)[0]
    np.testing.assert_allclose(results(after, inputs), results(mod, inputs), rtol=1e-6, atol=0.1)


@pytest.mark.parametrize("toolchain", ["onnxruntime", "openvino", "native"])
def test_every_engine_computes_a_program_in_integers(toolchain: str) -> None:
    """Against float32, not each other: their roundings differ."""
    before = residual_network()
    inputs = inputs_of(before)
    passes = [AnnotateQuantization(), CalibrateQuantization(), RealizeQuantization()]
    with running_program(Sequential(passes)(before), (toolchain,)) as run:
        for item in inputs:
            assert signal_to_noise(results(before, item), np.asarray(run(item)[0])) > LEAST_RATIO


def test_a_program_that_no_toolchain_runs() -> None:
    mod = AnnotateQuantization()(residual_network())
    with (
        running_program(mod, ("none",)) as run,
        pytest.raises(ExecutionError, match=r"^no toolchain runs the program: none is usable$"),
    ):
        run(inputs_of(mod)[0])
    with (
        running_program(mod, ("onnxruntime",)) as run,
        pytest.raises(ExecutionError, match=r"^no toolchain runs the program: onnxruntime: "),
    ):
        run({})


def test_dilations_of_one_are_left_out_of_integer_pools() -> None:
    """Onnxruntime refuses them: "Unrecognized attribute: dilations for operator QLinearAveragePool"."""
    conv = call("Conv", image(1, 4, 6, 6), weights(4, 4, 1, 1))
    pool = call("AveragePool", conv, kernel_shape=(2, 2), dilations=(1, 1))
    mod = program(call("Conv", pool, weights(4, 4, 1, 1)))
    passes = [AnnotateQuantization(), CalibrateQuantization(), RealizeQuantization()]
    inputs = inputs_of(mod)[0]
    with running_program(Sequential(passes)(mod), ("onnxruntime",)) as run:
        assert signal_to_noise(results(mod, inputs), np.asarray(run(inputs)[0])) > LEAST_RATIO
