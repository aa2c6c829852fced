"""Intarsia behind ONNX's backend interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import intarsia.onnx_backend as backend
from intarsia.onnx_backend import BackendIsNotSupposedToImplementIt, IntarsiaBackend, backend_for
from intarsia.support.errors import CompileError, InputError, InvalidModelError
from intarsia.toolchain import targets

pytestmark = pytest.mark.quick_tests(
    14, also=["test_run_node[NativeBackend]", "test_run_node_on_a_sequence_and_an_absent_value"]
)

FLOAT = TensorProto.FLOAT
X = np.array([[-1.0, 2.0]], np.float32)
Y = np.array([[0.5, 0.25]], np.float32)


def _model(nodes: list[NodeProto], inputs: list[str], outputs: list[str], opset: int = 26) -> ModelProto:
    infos = [
        [helper.make_tensor_value_info(name, FLOAT, [1, 2]) for name in names] for names in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "test", *infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.fixture
def difference() -> ModelProto:
    """A - b, and -(a - b)."""
    nodes = [helper.make_node("Sub", ["a", "b"], ["c"]), helper.make_node("Neg", ["c"], ["d"])]
    return _model(nodes, ["a", "b"], ["c", "d"])


BACKENDS = [IntarsiaBackend, *(backend_for(str(target.toolchain)) for target in targets())]


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("chosen", BACKENDS)
@pytest.mark.parametrize("inputs", [[X, Y], (X, Y), {"b": Y, "a": X}], ids=["list", "tuple", "names"])
def test_a_prepared_model_runs_again_and_again(
    difference: ModelProto, chosen: type[IntarsiaBackend], inputs: Any
) -> None:
    prepared = chosen.prepare(difference)
    for _ in range(2):
        outputs = prepared.run(inputs)
        assert isinstance(outputs, tuple)
        np.testing.assert_array_equal(outputs, [X - Y, Y - X])


def test_other_inputs_after_the_choice(difference: ModelProto) -> None:
    prepared = backend.prepare(difference)
    prepared.run([X, Y])
    np.testing.assert_array_equal(prepared.run([Y, X]), [Y - X, X - Y])


def test_run_model(difference: ModelProto) -> None:
    np.testing.assert_array_equal(backend.run_model(difference, [X, Y])[0], X - Y)


def test_the_only_input_needs_no_list() -> None:
    model = _model([helper.make_node("Neg", ["a"], ["b"])], ["a"], ["b"])
    np.testing.assert_array_equal(backend.run_model(model, X)[0], -X)


@pytest.mark.parametrize("chosen", BACKENDS)
def test_run_node(chosen: type[IntarsiaBackend]) -> None:
    node = helper.make_node("Clip", ["x", "", "max"], ["y"])
    (output,) = chosen.run_node(node, [X, np.array(0.5, np.float32)])
    np.testing.assert_array_equal(output, np.minimum(X, 0.5))


def test_run_node_of_an_old_opset() -> None:
    node = helper.make_node("Clip", ["x"], ["y"], min=-0.5)
    (output,) = backend.run_node(node, {"x": X}, opset_version=6)
    np.testing.assert_array_equal(output, np.maximum(X, -0.5))


def test_run_node_on_a_sequence_and_an_absent_value() -> None:
    length = helper.make_node("SequenceLength", ["s"], ["n"])
    assert backend.run_node(length, [[X, Y, X]])[0] == 3


def test_a_random_result_comes_from_the_reference() -> None:
    node = helper.make_node("RandomNormal", [], ["x"], shape=[3], seed=1.0)
    (output,) = backend.run_node(node, [])
    assert isinstance(output, np.ndarray)
    assert output.shape == (3,)


def test_a_result_that_no_engine_gives_exactly_comes_from_the_reference() -> None:
    """Onnxruntime leaves rounding errors of 1e-5 where the sum is zero: more than ONNX's suite accepts."""
    signal = np.arange(100, dtype=np.float32).reshape(1, 10, 10, 1)
    node = helper.make_node("DFT", ["x", "", "axis"], ["y"])
    (output,) = backend.run_node(node, [signal, np.array(1)])
    expected = np.fft.fft(signal[..., 0], axis=1)
    assert isinstance(output, np.ndarray)
    np.testing.assert_allclose(output, np.stack([expected.real, expected.imag], -1), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize(("device", "is_supported"), [("CPU", True), ("CPU:0", True), ("CUDA", False)])
def test_devices(difference: ModelProto, device: str, is_supported: bool) -> None:
    assert backend.supports_device(device) is is_supported
    if is_supported:
        backend.prepare(difference, device)
    else:
        with pytest.raises(BackendIsNotSupposedToImplementIt, match="the device 'CUDA' is not supported"):
            backend.prepare(difference, device)


def test_what_a_toolchain_refuses_is_not_supposed_to_be_implemented() -> None:
    node = helper.make_node("StringConcat", ["x", "y"], ["z"])
    text = np.array(["a"], object)
    with pytest.raises(BackendIsNotSupposedToImplementIt, match="openvino cannot compile") as caught:
        backend_for("openvino").run_node(node, [text, text])
    assert isinstance(caught.value.__cause__, CompileError)
    np.testing.assert_array_equal(backend.run_node(node, [text, text])[0], ["aa"])


def test_an_invalid_model_is_an_error() -> None:
    with pytest.raises(InvalidModelError):
        backend.prepare(_model([helper.make_node("NoSuchOperator", ["a"], ["b"])], ["a"], ["b"]))


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("inputs", [[X], [X, Y, X], {"a": X}, {"a": X, "c": Y}, [X, Y[0]]])
@pytest.mark.parametrize("chosen", [IntarsiaBackend, backend_for("reference")])
def test_inputs_that_do_not_fit(difference: ModelProto, chosen: type[IntarsiaBackend], inputs: Any) -> None:
    with pytest.raises(InputError):
        chosen.prepare(difference).run(inputs)


def test_a_node_with_too_few_inputs() -> None:
    with pytest.raises(InputError, match="1 inputs were given, expected 2"):
        backend.run_node(helper.make_node("Add", ["a", "b"], ["c"]), [X])
