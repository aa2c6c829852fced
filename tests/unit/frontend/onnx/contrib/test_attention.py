"""Definitions of attention operators over their masks, caches and layouts, against onnxruntime."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import pytest
from tests.contributed_nodes import (
    MICROSOFT,
    assert_defined,
    assert_opaque,
    domains_of,
    feeds_of,
    node_model,
)
from tests.onnx_models import onnxruntime_outputs

from intarsia.frontend.onnx import from_onnx, to_onnx

RNG = np.random.default_rng(2)
BATCH, STEPS, HEADS, SIZE, PAST = 2, 5, 2, 4, 3
WIDTH = HEADS * SIZE
TOTAL = STEPS + PAST


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def masks(total: int) -> dict[str, Any]:
    """A mask of each form for a number of keys."""
    raw = np.ones((BATCH, total), np.int32)
    raw[1, -2:] = 0
    left = np.ones((BATCH, total), np.int32)
    left[0, :3] = 0
    square = np.ones((BATCH, STEPS, total), np.int32)
    square[0, 2, :2] = square[1, :, -1] = 0
    return {
        "none": None,
        "lengths": np.array([total, total - 2], np.int32),
        "ends and beginnings": np.array([total, total - 2, 0, 1], np.int32),
        "raw": raw,
        "left padding": left,
        "nothing": np.zeros((BATCH, total), np.int32),
        "square": square,
    }


LOWEST = -3.4028234663852886e38
"""The lowest float32: transformers' value of masked scores, whose sums are -inf."""


def attention_inputs(mask: str, past: bool, bias: bool) -> dict[str, Any]:
    total = TOTAL if past else STEPS
    return {
        "x": floats(BATCH, STEPS, 6),
        "w": floats(6, 3 * WIDTH),
        "b": floats(3 * WIDTH),
        "mask": masks(total)[mask],
        "past": floats(2, BATCH, HEADS, PAST, SIZE) if past else None,
        "bias": floats(1, HEADS, STEPS, total) if bias else None,
    }


@pytest.mark.quick_cases(18)
@pytest.mark.parametrize("mask", list(masks(1)))
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("masked", [-10000.0, LOWEST])
def test_attention(mask: str, causal: int, past: bool, masked: float) -> None:
    inputs = attention_inputs(mask, past, bias=False)
    attrs = {"num_heads": HEADS, "unidirectional": causal, "mask_filter_value": masked}
    assert_defined("Attention", inputs, 2 if past else 1, **attrs)


def test_attention_with_a_bias_of_the_scores() -> None:
    inputs = attention_inputs("raw", past=False, bias=True)
    assert_defined("Attention", inputs, 2, num_heads=HEADS, scale=0.3, mask_filter_value=-500.0)
    assert_defined("Attention", {**inputs, "mask": None}, num_heads=HEADS)


def test_attention_with_wider_values() -> None:
    inputs = {"x": floats(BATCH, STEPS, 6), "w": floats(6, 28), "b": floats(28)}
    assert_defined("Attention", inputs, num_heads=HEADS, qkv_hidden_sizes=[8, 8, 12])


@pytest.mark.parametrize("mask", ["none", "raw", "square"])
def test_attention_of_dynamic_shape(mask: str) -> None:
    inputs = attention_inputs(mask, past=True, bias=False)
    constants = ("w", "b")
    attrs: dict[str, Any] = {"num_heads": HEADS, "unidirectional": 1}
    assert_defined("Attention", inputs, 2, constants=constants, dynamic=True, **attrs)


def test_attention_of_lengths_behind_another_of_any_batch() -> None:
    """The first one must not hide that there are as many lengths as texts."""
    weight, bias = floats(WIDTH, 3 * WIDTH), floats(3 * WIDTH)
    names = ["x", "y", "z"]
    nodes = [
        onnx.helper.make_node(
            "Attention", [before, "w", "b", "lengths"], [after], domain=MICROSOFT, num_heads=HEADS
        )
        for before, after in pairwise(names)
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "two",
        [
            onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", "step", WIDTH]),
            onnx.helper.make_tensor_value_info("lengths", onnx.TensorProto.INT32, ["batch"]),
        ],
        [onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in (("w", weight), ("b", bias))],
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(MICROSOFT, 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    module = from_onnx(model)
    assert domains_of(module) <= {""}
    feeds = {"x": floats(BATCH, STEPS, WIDTH), "lengths": masks(STEPS)["lengths"]}
    expected = onnxruntime_outputs(model, feeds)
    computed = onnxruntime_outputs(to_onnx(module["main"]), feeds)
    np.testing.assert_allclose(computed[0], expected[0], rtol=1e-5, atol=1e-5)


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("mask", ["none", "lengths", "raw", "left padding", "nothing", "square"])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("masked", [-500.0, LOWEST])
def test_multi_head_attention(mask: str, past: bool, masked: float) -> None:
    total = TOTAL if past else STEPS
    inputs = {
        "q": floats(BATCH, STEPS, WIDTH),
        "k": floats(BATCH, STEPS, WIDTH),
        "v": floats(BATCH, STEPS, WIDTH),
        "b": floats(3 * WIDTH),
        "mask": masks(total)[mask],
        "bias": floats(1, HEADS, STEPS, total),
        "pk": floats(BATCH, HEADS, PAST, SIZE) if past else None,
        "pv": floats(BATCH, HEADS, PAST, SIZE) if past else None,
    }
    attrs: dict[str, Any] = {"num_heads": HEADS, "mask_filter_value": masked}
    assert_defined("MultiHeadAttention", inputs, 3, atol=1e-4, **attrs)
    plain = {**inputs, "b": None, "bias": None}
    outputs = 3 if past else 1  # onnxruntime 1.31 ignores the past where the present is not wanted
    assert_defined("MultiHeadAttention", plain, outputs, unidirectional=1, atol=1e-4, **attrs)
    assert_defined("MultiHeadAttention", plain, outputs, scale=0.7, atol=1e-4, **attrs)


def imported_results(inputs: dict[str, Any]) -> list[Any]:
    model = node_model("MultiHeadAttention", inputs, num_heads=HEADS)
    return onnxruntime_outputs(to_onnx(from_onnx(model)["main"]), feeds_of(model, inputs))


@pytest.mark.parametrize("bias", [False, True])
def test_packed_attention_is_that_of_its_parts(bias: bool) -> None:
    """Onnxruntime packs on GPUs only."""
    parts = [floats(BATCH, STEPS, WIDTH) for _ in range(3)]
    heads = [part.reshape(BATCH, STEPS, HEADS, SIZE) for part in parts]
    added = floats(3 * WIDTH) if bias else None
    separate = imported_results({**dict(zip("qkv", parts, strict=True)), "b": added})
    packed = imported_results({"q": np.stack(heads, axis=3), "k": None, "v": None, "b": added})
    np.testing.assert_allclose(packed[0], separate[0], rtol=1e-5, atol=1e-6)
    if not bias:
        keys = imported_results({"q": parts[0], "k": np.stack(heads[1:], axis=3)})
        np.testing.assert_allclose(keys[0], separate[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mask", [False, True])
def test_cross_attention(mask: bool) -> None:
    keys = 7
    raw = np.ones((BATCH, keys), np.int32)
    raw[0, -3:] = 0
    inputs = {
        "q": floats(BATCH, STEPS, WIDTH),
        "k": floats(BATCH, keys, WIDTH),
        "v": floats(BATCH, keys, 2 * WIDTH),
        "b": floats(4 * WIDTH),
        "mask": raw if mask else None,
    }
    assert_defined("MultiHeadAttention", inputs, 3, num_heads=HEADS)
    heads = {"q": inputs["q"], "k": floats(BATCH, HEADS, keys, SIZE), "v": floats(BATCH, HEADS, keys, SIZE)}
    assert_defined("MultiHeadAttention", heads, num_heads=HEADS)


@pytest.mark.parametrize("positions", ["all", "first"])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("layout", ["flat", "heads", "part"])
def test_rotary_embedding(positions: str, interleaved: int, layout: str) -> None:
    at = RNG.integers(0, 9, (BATCH, STEPS)) if positions == "all" else np.array([3])
    shape = (BATCH, HEADS, STEPS, 8) if layout == "heads" else (BATCH, STEPS, HEADS * 8)
    attrs = {"num_heads": HEADS, "rotary_embedding_dim": 4} if layout == "part" else {}
    half = 2 if layout == "part" else 4
    inputs = {"x": floats(*shape), "p": at, "c": floats(9, half), "s": floats(9, half)}
    assert_defined("RotaryEmbedding", inputs, interleaved=interleaved, **attrs)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize("softcap", [0.0, 2.0])
def test_group_query_attention_of_a_prompt(packed: bool, rotary: int, softcap: float) -> None:
    heads, shared, size = 4, 2, 16
    widths = [heads * size, shared * size, shared * size]
    parts: list[Any] = [floats(BATCH, STEPS, width) for width in widths]
    if packed:
        parts = [np.concatenate(parts, axis=2), None, None]
    inputs = {
        **dict(zip("qkv", parts, strict=True)),
        "pk": None,
        "pv": None,
        "lengths": np.full(BATCH, STEPS - 1, np.int32),
        "total": np.array(STEPS, np.int32),
        "cos": floats(9, size // 2) if rotary else None,
        "sin": floats(9, size // 2) if rotary else None,
    }
    attrs = {"num_heads": heads, "kv_num_heads": shared, "do_rotary": rotary, "softcap": softcap}
    assert_defined("GroupQueryAttention", inputs, 3, rotary_interleaved=0, **attrs)


@pytest.mark.parametrize(("steps", "keys"), [(5, 5), (5, 3), (3, 5), (1, 6)])
@pytest.mark.parametrize("past", [False, True])
def test_causal_cross_attention(steps: int, keys: int, past: bool) -> None:
    inputs = {
        "q": floats(BATCH, steps, WIDTH),
        "k": floats(BATCH, keys, WIDTH),
        "v": floats(BATCH, keys, WIDTH),
        "b": None,
        "mask": None,
        "bias": None,
        "pk": floats(BATCH, HEADS, PAST, SIZE) if past else None,
        "pv": floats(BATCH, HEADS, PAST, SIZE) if past else None,
    }
    attrs = {"num_heads": HEADS, "unidirectional": 1}
    outputs = 3 if past else 1
    if keys <= steps:
        assert_defined("MultiHeadAttention", inputs, outputs, **attrs)
    else:  # onnxruntime 1.31 computes neither attention to the first keys nor to the last ones
        assert_opaque("MultiHeadAttention", inputs, outputs=outputs, **attrs)


def test_keys_that_a_bias_excludes_do_not_make_later_ones_visible() -> None:
    bias = np.zeros((1, 1, STEPS, STEPS), np.float32)
    bias[..., :3, :3] = LOWEST  # left padding: the first steps see nothing but padding
    inputs = {
        "q": floats(1, STEPS, 64),
        "k": floats(1, STEPS, 32),
        "v": floats(1, STEPS, 32),
        "pk": None,
        "pv": None,
        "lengths": np.full(1, STEPS - 1, np.int32),
        "total": np.array(STEPS, np.int32),
        "cos": None,
        "sin": None,
        "at": None,
        "bias": bias,
    }
    # with the present as outputs, onnxruntime 1.31 gives steps without a key zeros
    assert_defined("GroupQueryAttention", inputs, num_heads=4, kv_num_heads=2)


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("mask", ["none", "raw", "left padding", "lengths"])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("masked", [-10000.0, LOWEST])
def test_quantized_attention(mask: str, past: bool, columns: bool, masked: float) -> None:
    count = 3 * WIDTH if columns else 1
    inputs = {
        "x": RNG.integers(0, 255, (BATCH, STEPS, 8)).astype(np.uint8),
        "w": RNG.integers(-127, 127, (8, 3 * WIDTH)).astype(np.int8),
        "b": floats(3 * WIDTH),
        "xs": np.array(0.02, np.float32),
        "ws": np.linspace(0.01, 0.02, count, dtype=np.float32).reshape(() if count == 1 else count),
        "mask": masks(TOTAL if past else STEPS)[mask],
        "xz": np.array(100, np.uint8),
        "wz": np.zeros(() if count == 1 else count, np.int8),
        "past": floats(2, BATCH, HEADS, PAST, SIZE) if past else None,
    }
    constants = ("w", "b", "xs", "ws", "xz", "wz")
    outputs = 2 if past else 1
    attrs = {"num_heads": HEADS, "unidirectional": 1, "mask_filter_value": masked}
    assert_defined("QAttention", inputs, outputs, constants=constants, atol=1e-4, **attrs)
