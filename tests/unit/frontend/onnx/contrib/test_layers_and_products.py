"""Definitions of activations, normalisations, embeddings, products and convolutions, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.contributed_nodes import assert_defined
from tests.each_case import each_case

RNG = np.random.default_rng(0)


def floats(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


X = floats(2, 3, 8)
GAMMA, BETA, BIAS = floats(8), floats(8), floats(8)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("dynamic", [False, True])
def test_gelu_family(dtype: Any, dynamic: bool) -> None:
    x, bias = X.astype(dtype), BIAS.astype(dtype)
    if dtype is np.float32:
        assert_defined("Gelu", {"x": x}, dynamic=dynamic)
        assert_defined("BiasGelu", {"x": x, "b": bias}, dynamic=dynamic)
    tolerance = 1e-5 if dtype is np.float32 else 4e-3
    assert_defined("FastGelu", {"x": x}, atol=tolerance, dynamic=dynamic)
    assert_defined("FastGelu", {"x": x, "b": bias}, atol=tolerance, dynamic=dynamic)
    if dtype is np.float32:
        assert_defined("QuickGelu", {"x": x}, dynamic=dynamic)
        assert_defined("QuickGelu", {"x": x}, alpha=0.5)


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("outputs", [1, 3])
def test_layer_normalization_before_opset_17(axis: int, outputs: int) -> None:
    scale = GAMMA if axis == -1 else floats(3, 8)
    inputs = {"x": X, "s": scale, "b": scale}
    assert_defined(
        "LayerNormalization", inputs, outputs, domain="", default_opset=13, axis=axis, epsilon=1e-3
    )


@pytest.mark.parametrize("opset", [13, 17])
def test_simplified_layer_normalization(opset: int) -> None:
    inputs = {"x": X, "s": GAMMA}
    assert_defined(
        "SimplifiedLayerNormalization", inputs, domain="", default_opset=opset, axis=-1, epsilon=1e-3
    )


@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_inverse_root_mean_square(axis: int, dynamic: bool, dtype: Any) -> None:
    inputs = {"x": X.astype(dtype), "s": floats(*X.shape[axis % 3 :], dtype=dtype)}
    options: dict[str, Any] = {"domain": "", "axis": axis, "epsilon": 1e-3, "dynamic": dynamic}
    tolerance = 1e-5 if dtype is np.float32 else 4e-3
    assert_defined("SimplifiedLayerNormalization", inputs, 2, atol=tolerance, **options)


@pytest.mark.parametrize("skip", [(2, 3, 8), (1, 3, 8), (3, 8)])
@pytest.mark.parametrize("outputs", [1, (0, 3)])
def test_skip_layer_normalization(skip: tuple[int, ...], outputs: Any) -> None:
    inputs = {"x": X, "skip": floats(*skip), "g": GAMMA, "b": BETA, "bias": BIAS}
    assert_defined("SkipLayerNormalization", inputs, outputs, epsilon=1e-4)
    assert_defined("SkipLayerNormalization", {**inputs, "b": None, "bias": None}, outputs)
    del inputs["b"]
    assert_defined("SkipSimplifiedLayerNormalization", inputs, outputs, epsilon=1e-4)


@pytest.mark.parametrize("outputs", [2, 3])
@pytest.mark.parametrize("given", ["everything", "no segments", "no mask", "positions"])
def test_embed_layer_normalization(outputs: int, given: str) -> None:
    ids = RNG.integers(0, 10, (2, 5)).astype(np.int32)
    inputs: dict[str, Any] = {
        "ids": ids,
        "segments": ids % 2,
        "words": floats(10, 8),
        "positions": floats(6, 8),
        "kinds": floats(2, 8),
        "g": GAMMA,
        "b": BETA,
        "mask": (ids > 4).astype(np.int32),
        "at": None,
    }
    if given == "no segments":
        inputs |= {"segments": None, "kinds": None}
    if given == "no mask":
        inputs["mask"] = None
    if given == "positions":
        inputs["at"] = ids % 6
    assert_defined("EmbedLayerNormalization", inputs, outputs, epsilon=1e-5)


@each_case("flags", range(16))
def test_fused_mat_mul(flags: int) -> None:
    names = ("transA", "transB", "transBatchA", "transBatchB")
    attrs = {name: flags >> position & 1 for position, name in enumerate(names)}
    # the first axis goes behind the batch axis before the last two are exchanged
    sides = []
    for side, matrix in (("A", (4, 5)), ("B", (5, 6))):
        rows, columns = matrix if not attrs[f"trans{side}"] else matrix[::-1]
        sides.append((rows, 3, columns) if attrs[f"transBatch{side}"] else (3, rows, columns))
    inputs = {"a": floats(*sides[0]), "b": floats(*sides[1])}
    assert_defined("FusedMatMul", inputs, alpha=0.25, **attrs)


def test_transpose_mat_mul() -> None:
    assert_defined("TransposeMatMul", {"a": floats(2, 5, 4), "b": floats(2, 5, 6)}, transA=1, alpha=2.0)


@each_case(
    ("activation", "parameters"),
    [
        ("Celu", {"activation_alpha": 1.3}),
        ("Elu", {"activation_alpha": 1.3}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.6}),
        ("LeakyRelu", {"activation_alpha": 0.3}),
        ("LeakyRelu", {"activation_alpha": 0.3, "activation_beta": 0.6, "activation_gamma": 1.7}),
        ("Relu", {}),
        ("Selu", {"activation_alpha": 1.2, "activation_gamma": 2.0}),
        ("Selu", {"activation_alpha": 1.2, "activation_beta": 0.5, "activation_gamma": 2.0}),
        ("Sigmoid", {}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("Tanh", {}),
        ("ThresholdedRelu", {"activation_alpha": 0.8}),
    ],
)
def test_fused_gemm(activation: str, parameters: dict[str, Any]) -> None:
    inputs = {"a": floats(4, 3), "b": floats(4, 5), "c": floats(5)}
    assert_defined("FusedGemm", inputs, activation=activation, transA=1, alpha=0.5, beta=2.0, **parameters)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("Relu", {}),
        ("LeakyRelu", {"activation_params": [0.2]}),
        ("Clip", {"activation_params": [-0.5, 0.75]}),
        ("HardSigmoid", {"activation_params": [0.2, 0.4]}),
        ("Sigmoid", {}),
        ("Tanh", {}),
    ],
)
@pytest.mark.parametrize("added", [False, True])
def test_fused_conv(activation: str, parameters: dict[str, Any], added: bool) -> None:
    inputs = {"x": floats(1, 4, 6, 6), "w": floats(4, 2, 3, 3), "b": floats(4)}
    if added:
        inputs["z"] = floats(1, 4, 6, 6)
    attrs = {"pads": [1, 1, 1, 1], "group": 2, "kernel_shape": [3, 3], **parameters}
    assert_defined("FusedConv", inputs, activation=activation, **attrs)


def test_convolutions_and_sampling() -> None:
    x = floats(1, 2, 5, 5)
    inputs = {"x": x, "w": floats(2, 3, 3, 3), "p": np.array([1, 1, 0, 1]), "b": floats(3)}
    assert_defined("ConvTransposeWithDynamicPads", inputs, constants=("p",), strides=[2, 2])
    image = RNG.integers(0, 255, (1, 5, 5, 3)).astype(np.uint8)
    assert_defined("NhwcMaxPool", {"x": image}, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1])
    grid = RNG.uniform(-1.2, 1.2, (1, 4, 3, 2)).astype(np.float32)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            inputs = {"x": x, "g": grid}
            assert_defined("GridSample", inputs, mode=mode, padding_mode=padding, align_corners=1)


def test_rearrangements() -> None:
    x = floats(4, 5)
    assert_defined("Trilu", {"x": x}, upper=0)
    assert_defined("Trilu", {"x": x, "k": np.array(1)}, upper=1)
    assert_defined("GatherND", {"x": x, "i": np.array([[0, 1], [3, 2]], np.int32)})
    assert_defined("ExpandDims", {"x": x, "a": np.array([-1], np.int32)}, constants=("a",))
    number, six, two = (np.array(value, np.int32) for value in (1, 6, 2))
    assert_defined("Range", {"a": number, "b": six}, constants=("a", "b"))
    assert_defined("Range", {"a": number, "b": six, "c": two})
    assert_defined("Pad", {"x": x, "p": np.array([1, 0, -1, 2]), "v": np.array([3], np.float32)})
    assert_defined("Pad", {"x": x, "p": np.array([[1, 0, 1, 2]])}, mode="reflect")
    repeated = np.array([3, 1, 3, 2, 1, 1], np.float32)
    assert_defined("Unique", {"x": repeated}, 3)
    for metric in ("euclidean", "sqeuclidean"):
        assert_defined("CDist", {"a": x, "b": floats(3, 5)}, metric=metric, rtol=1e-4)
    assert_defined("UnfoldTensor", {"x": floats(2, 7, 3)}, dim=1, size=3, step=2)
