"""Every model of the zoo is valid, reproducible, and has outputs of about unit variance."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import pytest

from intarsia.frontend.zoo import INPUT_RANGE_KEY, Family, build_model, zoo, zoo_model
from intarsia.support.errors import UsageError

HEAVY = {"alexnet", "bert_base", "gpt2", "vgg19", "vit_base", "zfnet512"}  # 240 MB to 570 MB each
QUICK = {"mnist", "bert_tiny", "gpt2_tiny", "squeezenet", "mobilenet_v2", "lstm"}
TINY = ("bert_tiny", "dcgan", "gpt2_tiny", "mnist", "shufflenet", "squeezenet")
PARAMETERS = {
    "bert_base": 109_482_240,
    "convnext_tiny": 28_589_128,
    "gpt2": 124_439_808,
    "efficientnet_b0": 5_288_548 + 21_008 * 2,
    "lstm": 5_120_000 + 2 * 2_101_248 + 5_130_000,  # words, layers (with ONNX's two biases), decoder
    "mobilenet_v2": 3_504_872 + 17_056 * 2,  # as published, and the running means and variances
    "mnist": 8 * 25 + 8 + 16 * 8 * 25 + 16 + 2560 + 10,
    "nasnet_a": 5_289_978 + 18_369 * 2,
    "resnext50": 25_028_904 + 34_112 * 2,
    "unet": 7_763_041 + 2_944 * 2,
    "vit_base": 86_567_656,
}
IMAGE_OUTPUTS = {
    "convnext_tiny": (1, 1000),
    "dcgan": (1, 3, 64, 64),
    "efficientnet_b0": (1, 1000),
    "mobilenet_v2": (1, 1000),
    "nasnet_a": (1, 1000),
    "resnext50": (1, 1000),
    "unet": (1, 1, 256, 256),
    "vit_base": (1, 1000),
}
"""The shape of the only output, of models whose input is an image or a noise vector."""
Arrays = list[np.ndarray[Any, Any]]


def marked(name: str) -> Any:
    return pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])


EVERY = [marked(model.name) for model in zoo()]


def random_inputs(model: onnx.ModelProto, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    ranges = {entry.key: entry.value for entry in model.metadata_props}
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs: dict[str, np.ndarray[Any, Any]] = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.name in weights:
            continue
        if value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            low, high = map(int, ranges[INPUT_RANGE_KEY + value.name].split(","))
            inputs[value.name] = generator.integers(low, high, shape)
        else:
            inputs[value.name] = generator.standard_normal(shape, dtype=np.float32)
    return inputs


def outputs_before_softmax(model: onnx.ModelProto) -> Arrays:
    """Run the model; where the last node is a Softmax, its input is returned after the outputs."""
    import onnxruntime

    last = model.graph.node[-1]
    if last.op_type == "Softmax":
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(last.input[0]))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # two light models carry an unused initializer, which is a warning
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
    results: Arrays = session.run(None, random_inputs(model, seed=1))
    return results


def float_count(model: onnx.ModelProto) -> int:
    return sum(len(t.raw_data) // 4 for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("name", EVERY)
def test_model(name: str) -> None:
    """All checks that need no second model: the large ones take seconds to make."""
    model = build_model(name)
    onnx.checker.check_model(model, full_check=name not in HEAVY)
    check_shapes_and_names(model)
    if name in PARAMETERS:
        scalars = sum(1 for tensor in model.graph.initializer if tensor.name.startswith("scalar_"))
        assert float_count(model) - scalars == PARAMETERS[name]
    if name in IMAGE_OUTPUTS:
        assert [value.name for value in model.graph.output] == [model.graph.node[-1].output[0]]

    outputs = outputs_before_softmax(model)

    assert all(np.isfinite(output).all() for output in outputs)
    assert 0.3 < outputs[-1].std() < 3, "the variance is about 1"
    if name in IMAGE_OUTPUTS:
        assert [output.shape for output in outputs] == [IMAGE_OUTPUTS[name]]


def check_shapes_and_names(model: onnx.ModelProto) -> None:
    """One batch of static shape, and everything has a name."""
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]

    for value in (*inputs, *graph.output):
        assert value.name
        assert all(dim.dim_value > 0 for dim in value.type.tensor_type.shape.dim)
    assert {value.type.tensor_type.shape.dim[0].dim_value for value in (*inputs, *graph.output)} == {1}
    assert "ConstantOfShape" not in {node.op_type for node in graph.node}
    assert all(tensor.raw_data for tensor in graph.initializer)
    if model.producer_name == "intarsia.zoo":
        node_names = [node.name for node in graph.node]
        assert all(node_names)
        assert len(set(node_names)) == len(node_names)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("name", TINY)
def test_same_seed_gives_same_bytes(name: str) -> None:
    assert build_model(name, seed=3).SerializeToString() == build_model(name, seed=3).SerializeToString()


@pytest.mark.slow
def test_another_process_gives_the_same_bytes() -> None:
    source = (
        "import hashlib; from intarsia.frontend.zoo import build_model;"
        "print(hashlib.sha256(build_model('mnist', 5).SerializeToString()).hexdigest(), end='')"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", source],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout) == 64


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("name", TINY)
def test_another_seed_gives_other_weights_in_every_tensor(name: str) -> None:
    first, second = build_model(name, seed=0), build_model(name, seed=1)
    used = {name for node in first.graph.node for name in node.input}
    for one, other in zip(first.graph.initializer, second.graph.initializer, strict=True):
        is_float = one.data_type == onnx.TensorProto.FLOAT
        if is_float and one.name in used and not one.name.startswith("scalar_"):
            assert one.raw_data != other.raw_data, one.name


@pytest.mark.parametrize(
    ("name", "ranges"),
    [
        ("bert_tiny", {"input_ids": "0,1000", "attention_mask": "1,2"}),
        ("gpt2_tiny", {"input_ids": "0,1000"}),
        ("lstm", {"input_ids": "0,10000"}),
        ("mnist", {}),
    ],
)
def test_ranges_of_integer_inputs_are_in_the_metadata(name: str, ranges: dict[str, str]) -> None:
    found = {entry.key: entry.value for entry in build_model(name).metadata_props}
    assert found == {INPUT_RANGE_KEY + key: value for key, value in ranges.items()}


@pytest.mark.parametrize("name", ["bert_tiny", "gpt2_tiny"])
def test_a_token_reaches_the_positions_that_attention_allows(name: str) -> None:
    import onnxruntime

    model = build_model(name)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = random_inputs(model, seed=1)
    changed = {key: value.copy() for key, value in inputs.items()}
    changed["input_ids"][0, 10] += -1 if changed["input_ids"][0, 10] else 1
    before, after = session.run(None, inputs)[0], session.run(None, changed)[0]

    moved = np.abs(before - after).max(axis=(0, 2)) > 1e-6
    expected = np.ones(32, bool) if name == "bert_tiny" else np.arange(32) >= 10
    np.testing.assert_array_equal(moved, expected)


@pytest.mark.slow
def test_a_token_reaches_the_later_states_of_an_lstm_and_fades() -> None:
    import onnxruntime

    model = build_model("lstm")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = random_inputs(model, seed=1)
    changed = {"input_ids": inputs["input_ids"].copy()}
    changed["input_ids"][0, 10] += -1 if changed["input_ids"][0, 10] else 1
    before, after = session.run(None, inputs)[0], session.run(None, changed)[0]

    moved = np.abs(before - after).max(axis=(0, 2))
    assert before.shape == (1, 64, 10_000)
    assert (moved[:10] == 0).all()
    assert moved[10] > 1
    assert moved[40:].max() < 0.01  # and so do rounding errors


def test_masked_tokens_do_not_reach_the_others() -> None:
    import onnxruntime

    model = build_model("bert_tiny")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = random_inputs(model, seed=1)
    inputs["attention_mask"][0, 16:] = 0
    changed = {**inputs, "input_ids": inputs["input_ids"].copy()}
    changed["input_ids"][0, 16:] = 0
    before, after = session.run(None, inputs)[0], session.run(None, changed)[0]
    np.testing.assert_allclose(before[0, :16], after[0, :16], atol=1e-5)


def test_mnist_is_the_network_of_the_collage_rfc() -> None:
    model = build_model("mnist")
    assert [node.op_type for node in model.graph.node] == [
        *("Pad", "Conv", "Add", "Relu", "MaxPool"),
        *("Pad", "Conv", "Add", "Relu", "MaxPool"),
        *("Reshape", "Gemm", "Add"),
    ]


def test_light_models_keep_opset_and_ir_version() -> None:
    model = build_model("squeezenet")
    assert (model.opset_import[0].version, model.ir_version) == (9, 3)
    assert model.graph.node[0].op_type == "Conv"


def test_zoo_is_sorted_and_has_every_family() -> None:
    listed = [model.name for model in zoo()]
    assert listed == sorted(listed)
    assert len(listed) == 23
    assert {model.family for model in zoo()} == set(Family)


def test_unknown_name_lists_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        zoo_model("resnet5")
    assert "unknown zoo model 'resnet5'" in str(caught.value)
    assert "resnet50" in caught.value.help


def test_negative_seed_is_refused() -> None:
    with pytest.raises(UsageError, match="the seed of a zoo model is -1, expected 0 or more"):
        build_model("mnist", seed=-1)
