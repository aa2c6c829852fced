"""Definitions of quantised operators, against onnxruntime; results may differ by one quantum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.contributed_nodes import assert_defined, assert_opaque

RNG = np.random.default_rng(1)
QUANTUM = {"rtol": 0, "atol": 1}


def integers(*shape: int, dtype: Any = np.uint8) -> Any:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def scale(value: float) -> Any:
    return np.array(value, np.float32)


def quantized(
    name: str, *shape: int, dtype: Any = np.uint8, zero: int = 3, by: float = 0.05
) -> dict[str, Any]:
    return {
        name: integers(*shape, dtype=dtype),
        f"{name}_scale": scale(by),
        f"{name}_zero": np.array(zero, dtype),
    }


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("name", ["QLinearAdd", "QLinearMul"])
def test_binary(name: str, dtype: Any) -> None:
    inputs = {
        **quantized("a", 2, 3, 4, dtype=dtype),
        **quantized("b", 3, 1, dtype=dtype, zero=7, by=0.02),
        "c_scale": scale(0.1),
        "c_zero": np.array(1, dtype),
    }
    assert_defined(name, inputs, **QUANTUM)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_unary(dtype: Any) -> None:
    result = {"y_scale": scale(1 / 256), "y_zero": np.array(0, dtype)}
    inputs = {**quantized("x", 2, 3, 5, dtype=dtype), **result}
    assert_defined("QLinearSigmoid", inputs, **QUANTUM)
    assert_defined("QLinearLeakyRelu", {**inputs, "y_scale": scale(0.1)}, alpha=0.2, **QUANTUM)
    for opset, axis in ((13, -1), (13, 1), (11, 1)):
        assert_defined("QLinearSoftmax", inputs, opset=opset, axis=axis, **QUANTUM)


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("pads", [None, [1, 1, 1, 1], [0, 2, 0, 1], [0, 0, 1, 2]])
@pytest.mark.parametrize("strides", [[2, 2], [2, 3], [3, 2]])
def test_average_pooling_whose_last_window_overhangs(
    channels_last: int, pads: list[int] | None, strides: list[int]
) -> None:
    shape = (1, 6, 7, 2) if channels_last else (1, 2, 6, 7)
    inputs = {**quantized("x", *shape), "y_scale": scale(0.05), "y_zero": np.array(3, np.uint8)}
    window: dict[str, Any] = {"kernel_shape": [3, 3], "strides": strides, "channels_last": channels_last}
    window |= {"auto_pad": "SAME_UPPER"} if pads is None else {"pads": pads}
    assert_defined("QLinearAveragePool", inputs, ceil_mode=1, **window, **QUANTUM)
    assert_defined("QLinearAveragePool", inputs, count_include_pad=1, **window, **QUANTUM)
    # onnxruntime divides by the size of the whole window, ONNX by what of it lies within the padding
    assert_opaque("QLinearAveragePool", inputs, ceil_mode=1, count_include_pad=1, **window)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("channels_last", [0, 1])
def test_pooling_and_convolution(dtype: Any, channels_last: int) -> None:
    shape = (1, 6, 7, 3) if channels_last else (1, 3, 6, 7)
    inputs = {
        **quantized("x", *shape, dtype=dtype),
        "y_scale": scale(0.06),
        "y_zero": np.array(2, dtype),
    }
    last = {"channels_last": channels_last, **QUANTUM}
    assert_defined("QLinearGlobalAveragePool", inputs, **last)
    for include in (0, 1):
        window: dict[str, Any] = {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]}
        assert_defined("QLinearAveragePool", inputs, count_include_pad=include, **window, **last)
    weights = {
        "x": inputs["x"],
        "x_scale": inputs["x_scale"],
        "x_zero": inputs["x_zero"],
        "w": integers(4, 3, 3, 3, dtype=dtype),
        "w_scale": np.array([0.01, 0.02, 0.03, 0.04], np.float32),
        "w_zero": np.zeros(4, dtype) if dtype is np.int8 else np.full(4, 128, dtype),
        "y_scale": scale(2.0),
        "y_zero": np.array(5, dtype),
        "b": integers(4, dtype=np.int8).astype(np.int32) * 100,
    }
    assert_defined("QLinearConv", weights, pads=[1, 1, 1, 1], constants=tuple(weights)[1:], **last)


def test_moving() -> None:
    inputs = {
        "c": np.array([[True], [False]]),
        **quantized("x", 2, 3),
        **quantized("y", 2, 3, zero=9, by=0.02),
        "z_scale": scale(0.07),
        "z_zero": np.array(4, np.uint8),
    }
    parameters = tuple(name for name in inputs if "_" in name)
    assert_defined("QLinearWhere", inputs, constants=parameters, **QUANTUM)
    parts = {
        "y_scale": scale(0.07),
        "y_zero": np.array(4, np.uint8),
        **quantized("a", 2, 3),
        **quantized("b", 2, 1),
    }
    parameters = tuple(name for name in parts if "_" in name)
    assert_defined("QLinearConcat", parts, axis=1, constants=parameters, **QUANTUM)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_quantize_and_dequantize(dtype: Any) -> None:
    x = RNG.standard_normal((2, 3, 4)).astype(np.float32) * 50
    whole = {"x": x, "s": scale(0.2), "z": np.array(5, dtype)}
    by_axis = {"x": x, "s": np.array([0.1, 0.2, 0.3], np.float32), "z": np.array([1, 2, 3], dtype)}
    assert_defined("QuantizeLinear", whole)
    assert_defined("QuantizeLinear", by_axis, axis=1)
    assert_defined("DequantizeLinear", {**whole, "x": integers(2, 3, dtype=dtype)})
    assert_defined("DequantizeLinear", {**by_axis, "x": integers(2, 3, dtype=dtype)}, axis=1)
    assert_defined("DequantizeLinear", {**by_axis, "x": integers(3, 2, dtype=dtype)}, axis=0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("columns", [False, True])
def test_products(dtype: Any, columns: bool) -> None:
    a, b = RNG.standard_normal((2, 4, 16)).astype(np.float32), integers(16, 5, dtype=dtype)
    b_scale = np.linspace(0.01, 0.02, 5, dtype=np.float32) if columns else np.array([0.01], np.float32)
    b_zero = np.full(b_scale.shape, 3, dtype)
    bias = RNG.standard_normal(5).astype(np.float32)
    weights = {"b": b, "s": b_scale, "z": b_zero, "bias": bias}
    constants = ("b", "s", "z")
    assert_defined("DynamicQuantizeMatMul", {"a": a, **weights}, constants=constants, atol=1e-4)
    assert_defined(
        "DynamicQuantizeMatMul", {"a": a, **weights, "z": None, "bias": None}, constants=constants, atol=1e-4
    )
    inputs = {"a": integers(2, 4, 16, dtype=np.uint8), "b": b, "a_s": scale(0.02), "s": b_scale}
    inputs |= {"a_z": np.array(7, np.uint8), "z": b_zero, "bias": bias}
    assert_defined("MatMulIntegerToFloat", inputs, constants=constants, atol=1e-4)
    without = {**inputs, "a_z": None, "z": None, "bias": None}
    assert_defined("MatMulIntegerToFloat", without, constants=constants, atol=1e-4)


def test_mat_mul_integer_16() -> None:
    inputs = {"a": integers(3, 4, dtype=np.int16), "b": integers(4, 5, dtype=np.int16) // 8}
    assert_defined("MatMulInteger16", inputs)


@pytest.mark.parametrize("flags", [0, 1, 2, 3])
def test_gemm(flags: int) -> None:
    attrs = {"transA": flags & 1, "transB": flags >> 1}
    a, b = integers(4, 16), integers(16, 5, dtype=np.int8)
    inputs: dict[str, Any] = {
        "a": np.ascontiguousarray(a.T) if attrs["transA"] else a,
        "a_scale": scale(0.02),
        "a_zero": np.array(9, np.uint8),
        "b": np.ascontiguousarray(b.T) if attrs["transB"] else b,
        "b_scale": np.linspace(0.01, 0.02, 5, dtype=np.float32),
        "b_zero": np.zeros(5, np.int8),
        "c": RNG.integers(-1000, 1000, 5).astype(np.int32),
        "y_scale": scale(0.5),
        "y_zero": np.array(100, np.uint8),
    }
    constants = tuple(name for name in inputs if name != "a")
    assert_defined("QGemm", inputs, constants=constants, alpha=0.5, **attrs, **QUANTUM)
    assert_defined(
        "QGemm", {**inputs, "y_scale": None, "y_zero": None}, constants=constants, **attrs, atol=1e-4
    )
    assert_defined("QGemm", {**inputs, "c": None}, constants=constants, **attrs, **QUANTUM)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("width", [64, 50])
@pytest.mark.parametrize("zeros", [False, True])
def test_mat_mul_n_bits(bits: int, width: int, zeros: bool) -> None:
    rows, block = 6, 16
    blocks = -(-width // block)
    inputs: dict[str, Any] = {
        "a": RNG.standard_normal((2, 3, width)).astype(np.float32),
        "b": integers(rows, blocks, block * bits // 8),
        "s": RNG.uniform(0.01, 0.1, (rows * blocks)).astype(np.float32),
        "z": integers(rows * -(-blocks * bits // 8)) if zeros else None,
        "g": None,
        "bias": RNG.standard_normal(rows).astype(np.float32),
    }
    attrs = {"K": width, "N": rows, "bits": bits, "block_size": block}
    constants = ("b", "s", "z", "bias")
    assert_defined("MatMulNBits", inputs, constants=constants, atol=1e-4, **attrs)
    del inputs["bias"]
    assert_defined("MatMulNBits", inputs, constants=constants, atol=1e-4, **attrs)


def test_quantized_embeddings() -> None:
    ids = RNG.integers(0, 10, (2, 5)).astype(np.int32)
    tables = {"w": (10, 8), "p": (6, 8), "k": (2, 8), "g": (8,), "b": (8,)}
    inputs: dict[str, Any] = {"ids": ids, "segments": ids % 2}
    inputs |= {name: integers(*shape) for name, shape in tables.items()}
    inputs["mask"] = (ids > 4).astype(np.int32)
    inputs |= {f"{name}_s": scale(0.02) for name in tables}
    inputs |= {f"{name}_z": np.array(120, np.uint8) for name in tables}
    constants = tuple(name for name in inputs if name not in ("ids", "segments", "mask"))
    assert_defined("QEmbedLayerNormalization", inputs, 2, constants=constants, epsilon=1e-5, atol=1e-4)
