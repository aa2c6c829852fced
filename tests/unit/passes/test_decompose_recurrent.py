"""Recurrent layers as the operators of their steps and as a Scan, against onnxruntime and natively."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, numpy_helper
from tests.effort import examples
from tests.recurrent_layers import recurrent_model

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Call, IRModule, post_order
from intarsia.native.graph import plan_region
from intarsia.native.machine.isa import Isa
from intarsia.passes import DecomposeRecurrent, InferType, RecurrentToScan, partition_whole
from intarsia.target import Target
from intarsia.toolchain.native.simplified import simplified
from intarsia.transform import Pass, PassContext

pytestmark = pytest.mark.quick_tests(
    7,
    also=[
        "test_a_scan_takes_any_number_of_steps_and_sequences",
        "test_other_forms_stay[parameter without default]",
    ],
)

STEPS, FEATURES, WIDTH = 5, 3, 4
OPERATORS = ("RNN", "GRU", "LSTM")
OPTIONAL = {
    "RNN": ("b", "initial_h"),
    "GRU": ("b", "initial_h"),
    "LSTM": ("b", "initial_h", "initial_c", "p"),
}
FUNCTIONS = {
    "Relu": (0, 0),
    "Tanh": (0, 0),
    "Sigmoid": (0, 0),
    "Softsign": (0, 0),
    "Softplus": (0, 0),
    "LeakyRelu": (1, 0),
    "ThresholdedRelu": (1, 0),
    "Elu": (1, 0),
    "HardSigmoid": (1, 1),
    "Affine": (1, 1),
    "ScaledTanh": (1, 1),
}
"""Names of activation functions, and whether they take alpha and beta."""
BOUNDED = {"Tanh", "Sigmoid", "Softsign", "HardSigmoid", "ScaledTanh"}
"""Activation functions with bounded results."""


def rewritten(module: IRModule, item: Pass) -> IRModule:
    """The module after a pass, typed before and after."""
    return InferType()(item(InferType()(module, PassContext()), PassContext()), PassContext())


def operators(module: IRModule) -> set[str]:
    """The operators of the main function, those of bodies included."""
    return {str(node.op) for node in post_order(module["main"]) if isinstance(node, Call)}


def inputs_of(model: ModelProto, seed: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    """Random inputs; unknown dimensions are STEPS, and lengths go from 1 to that."""
    generator = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for item in model.graph.input:
        shape = [dim.dim_value or STEPS for dim in item.type.tensor_type.shape.dim]
        if item.name == "lengths":
            arrays[item.name] = generator.integers(1, STEPS + 1, shape).astype(np.int32)
        else:
            arrays[item.name] = generator.standard_normal(shape, np.float32)
    return arrays


def by_onnxruntime(model: ModelProto, inputs: dict[str, Any]) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


def by(toolchain: str, module: IRModule, inputs: dict[str, Any]) -> list[Any]:
    with build(partition_whole(module, Target.for_toolchain(toolchain))) as executable:
        return list(executable.run_flat(**inputs))


def assert_close(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@st.composite
def layers(draw: st.DrawFn) -> ModelProto:
    """A layer with random attributes, arguments and lengths; what onnxruntime takes.

    Weights of layers with unbounded activations are small. Otherwise the states grow with a power of the
    number of steps: rounding errors exceed any tolerance, sums overflow in one order and not in another, and
    onnxruntime's Softplus in layers, which computes exp(x) first, is infinite from x = 89 on.
    """
    operator = draw(st.sampled_from(OPERATORS))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    batch, steps = draw(st.integers(1, 3)), draw(st.integers(1, STEPS))
    optional = tuple(name for name in OPTIONAL[operator] if draw(st.booleans()))
    attrs: dict[str, Any] = {}
    if draw(st.booleans()):
        attrs["clip"] = draw(st.sampled_from([0.25, 1.0]))
    if operator == "GRU":
        attrs["linear_before_reset"] = draw(st.integers(0, 1))
    if operator == "LSTM":
        attrs["input_forget"] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[operator] * (2 if direction == "bidirectional" else 1)
        names = [draw(st.sampled_from(sorted(FUNCTIONS))) for _ in range(count)]
        attrs["activations"] = names
        numbers = st.sampled_from([0.1, 0.3, 0.7])
        for position, key in enumerate(("activation_alpha", "activation_beta")):
            values = [draw(numbers) for name in names if FUNCTIONS[name][position]]
            attrs |= {key: values} if values else {}
    lengths = None
    if draw(st.booleans()):
        lengths = tuple(draw(st.integers(0, steps)) for _ in range(batch))
        lengths = (steps, *lengths[1:])
    return recurrent_model(
        operator,
        steps=steps,
        batch=batch,
        direction=direction,
        optional=optional,
        lengths=lengths,
        seed=draw(st.integers(0, 99)),
        scale=1.0 if set(attrs.get("activations", ())) <= BOUNDED else 0.25,
        **attrs,
    )


@settings(max_examples=examples(40, quick=6), deadline=None)
@given(layers(), st.sampled_from([DecomposeRecurrent(), RecurrentToScan()]))
def test_the_steps_compute_what_the_operator_does(model: ModelProto, item: Pass) -> None:
    inputs = inputs_of(model)
    after = rewritten(from_onnx(model), item)
    assert not operators(after) & set(OPERATORS)
    assert_close(by("onnxruntime", after, inputs), by_onnxruntime(model, inputs))


@pytest.mark.parametrize("toolchain", ["native", "onnxruntime"])
def test_softplus_of_large_sums_is_finite(toolchain: str) -> None:
    """ONNX defines log(1 + exp(x)), which is x here; the layer of onnxruntime gives infinity."""
    model = recurrent_model("RNN", steps=1, activations=["Softplus"])
    x = 1000 * inputs_of(model)["x"][:1]
    (weights,) = (item for item in model.graph.initializer if item.name == "w")
    sums = (x @ numpy_helper.to_array(weights)[0].T)[:, None].astype(np.float64)
    assert sums.max() > 89
    after = rewritten(from_onnx(model), DecomposeRecurrent())
    assert_close(by(toolchain, after, {"x": x})[:1], [np.logaddexp(0, sums)])


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("item", [DecomposeRecurrent(), RecurrentToScan()], ids=str)
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_batch_may_be_the_first_axis(operator: str, item: Pass) -> None:
    options: dict[str, Any] = {"batch": 2, "direction": "bidirectional", "layout": 1}
    model = recurrent_model(operator, optional=("b", "initial_h", "initial_c")[: len(operator)], **options)
    inputs, module = inputs_of(model), from_onnx(model)
    expected = by("reference", module, inputs)
    assert_close(by("onnxruntime", rewritten(module, item), inputs), expected)


@pytest.mark.parametrize("item", [DecomposeRecurrent(), RecurrentToScan()], ids=str)
def test_lengths_may_be_known_only_at_run_time(item: Pass) -> None:
    model = recurrent_model(
        "GRU", batch=3, direction="bidirectional", optional=("b", "initial_h"), lengths=()
    )
    inputs = inputs_of(model)
    assert_close(by("onnxruntime", rewritten(from_onnx(model), item), inputs), by_onnxruntime(model, inputs))


def test_a_scan_takes_any_number_of_steps_and_sequences() -> None:
    model = recurrent_model("LSTM", steps="steps", batch=2, optional=("b",), lengths=())
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "batch"
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "batch"
    module = from_onnx(model)
    assert "LSTM" in operators(rewritten(module, DecomposeRecurrent()))
    after = rewritten(module, RecurrentToScan())
    for steps, batch in ((3, 2), (7, 1)):
        inputs = {
            "x": np.random.default_rng(0).standard_normal((steps, batch, FEATURES), np.float32),
            "lengths": np.array([steps, 2][:batch], np.int32),
        }
        assert_close(by("onnxruntime", after, inputs), by_onnxruntime(model, inputs))


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("RNN", {"direction": "reverse", "optional": ("b",)}),
        (
            "GRU",
            {"direction": "bidirectional", "batch": 2, "optional": ("b", "initial_h"), "lengths": (5, 2)},
        ),
        ("GRU", {"linear_before_reset": 1, "optional": ("b",), "clip": 0.5}),
        ("LSTM", {"optional": ("b", "initial_h", "initial_c", "p"), "lengths": (), "batch": 2}),
    ],
    ids=["rnn", "gru", "gru-linear", "lstm"],
)
def test_native_has_kernels_for_the_steps(operator: str, options: dict[str, Any]) -> None:
    model = recurrent_model(operator, **options)
    inputs = inputs_of(model)
    assert_close(by("native", from_onnx(model), inputs), by_onnxruntime(model, inputs))


@pytest.mark.parametrize(
    "attrs",
    [{"activations": ["Affine"]}, {"activations": ["Cosine"]}],
    ids=["parameter without default", "unknown function"],
)
def test_other_forms_stay(attrs: dict[str, Any]) -> None:
    module = from_onnx(recurrent_model("RNN", **attrs))
    assert operators(rewritten(module, DecomposeRecurrent())) == {"RNN"}
    assert operators(rewritten(module, RecurrentToScan())) == {"RNN"}


def test_more_steps_than_are_worth_it_become_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intarsia.passes.decompose_recurrent.MOST_STEPS", STEPS)
    short, long = (
        from_onnx(recurrent_model("LSTM", direction=text)) for text in ("forward", "bidirectional")
    )
    assert "LSTM" not in operators(rewritten(short, DecomposeRecurrent()))
    assert operators(rewritten(long, DecomposeRecurrent())) == {"LSTM"}
    item = RecurrentToScan(most_steps=STEPS)
    assert operators(rewritten(short, item)) == {"LSTM"}
    assert "Scan" in operators(rewritten(long, item))


def test_steps_share_their_kernels_and_the_recurrent_weights() -> None:
    function = simplified(
        from_onnx(recurrent_model("LSTM", optional=("b", "initial_h", "initial_c")))["main"]
    )
    plan = plan_region(function, Isa.host())
    products = [kernel for kernel in plan.kernels if "matmul" in kernel.name]
    recurrent = {
        id(array)
        for kernel in products
        for array in kernel.constants.values()
        if array.shape == (WIDTH, 4 * WIDTH)
    }
    assert len(products) == STEPS  # one of all inputs; that of the first step, of constants, is folded
    assert len(recurrent) == 1
