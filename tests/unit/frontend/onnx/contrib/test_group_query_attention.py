"""GroupQueryAttention with keys and values of the past, as onnxruntime's model builder writes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.contributed_nodes import MICROSOFT, domains_of, feeds_of, node_model
from tests.onnx_models import onnxruntime_outputs

from intarsia.frontend.onnx import from_onnx, to_onnx

SIZE = 16


def floats(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def attention_inputs(
    rng: np.random.Generator,
    *,
    lengths: list[int],
    steps: int,
    room: int,
    heads: int = 4,
    shared: int = 2,
    packed: bool = False,
    rotary: bool = False,
    positions: bool = False,
    bias: bool = False,
) -> dict[str, Any]:
    """Inputs for texts of some lengths, new tokens included, whose cache has some room."""
    batch, total = len(lengths), max(lengths)
    parts: list[Any] = [
        floats(rng, batch, steps, width) for width in (heads * SIZE, shared * SIZE, shared * SIZE)
    ]
    if packed:
        parts = [np.concatenate(parts, axis=2), None, None]
    past = [floats(rng, batch, shared, room, SIZE) for _ in range(2)]
    rows = np.array(lengths)[:, None] - steps + np.arange(steps)
    return {
        **dict(zip("qkv", parts, strict=True)),
        "pk": past[0],
        "pv": past[1],
        "lengths": np.array(lengths, np.int32) - 1,
        "total": np.array(total, np.int32),
        "cos": floats(rng, total + 3, SIZE // 2) if rotary else None,
        "sin": floats(rng, total + 3, SIZE // 2) if rotary else None,
        "positions": rows.astype(np.int64) if positions and rotary else None,
        "bias": floats(rng, batch, heads, steps, total) if bias else None,
    }


def assert_as_onnxruntime(inputs: dict[str, Any], **attrs: Any) -> None:
    """The imported node computes what onnxruntime does, with fixed sizes and with symbols.

    Rows of the cache behind the valid tokens are not compared: onnxruntime fills them with zeros.
    """
    lengths = inputs["lengths"] + 1
    model = node_model("GroupQueryAttention", inputs, 3, kv_num_heads=2, num_heads=4, **attrs)
    feeds = feeds_of(model, inputs)
    expected = onnxruntime_outputs(model, feeds)
    module = from_onnx(model)
    assert domains_of(module) == {""}
    computed = onnxruntime_outputs(to_onnx(module["main"]), feeds)
    assert [array.shape for array in computed] == [array.shape for array in expected]
    np.testing.assert_allclose(computed[0], expected[0], rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(computed[1:], expected[1:], strict=True):
        for text, length in enumerate(lengths):
            np.testing.assert_allclose(ours[text, :, :length], theirs[text, :, :length], rtol=1e-5, atol=1e-6)


@given(
    seed=st.integers(0, 1000),
    lengths=st.lists(st.integers(2, 9), min_size=1, max_size=3),
    spare=st.integers(0, 4),
    packed=st.booleans(),
    rotary=st.booleans(),
    positions=st.booleans(),
    bias=st.booleans(),
    window=st.sampled_from([-1, 1, 3]),
    softcap=st.sampled_from([0.0, 5.0]),
)
@example(0, [5], 0, True, True, False, False, -1, 0.0)  # a growing cache
@example(0, [9, 4], 2, True, True, False, False, 3, 0.0)
def test_a_step_of_texts_of_different_lengths(
    seed: int,
    lengths: list[int],
    spare: int,
    packed: bool,
    rotary: bool,
    positions: bool,
    bias: bool,
    window: int,
    softcap: float,
) -> None:
    inputs = attention_inputs(
        np.random.default_rng(seed),
        lengths=lengths,
        steps=1,
        room=max(lengths) - 1 + spare,
        packed=packed,
        rotary=rotary,
        positions=positions,
        bias=bias,
    )
    assert_as_onnxruntime(inputs, do_rotary=int(rotary), local_window_size=window, softcap=softcap)


@given(
    seed=st.integers(0, 1000),
    before=st.integers(0, 6),
    steps=st.integers(2, 5),
    spare=st.integers(-1, 4),
    rotary=st.booleans(),
    window=st.sampled_from([-1, 2]),
)
@example(0, 0, 4, -1, True, 2)
def test_a_part_of_a_prompt(
    seed: int, before: int, steps: int, spare: int, rotary: bool, window: int
) -> None:
    room = before if spare < 0 else before + steps + spare  # a cache that grows, or one that is long enough
    inputs = attention_inputs(
        np.random.default_rng(seed), lengths=[before + steps], steps=steps, room=room, rotary=rotary
    )
    assert_as_onnxruntime(inputs, do_rotary=int(rotary), local_window_size=window)


@pytest.mark.parametrize("room", [5, 8])
def test_prompts_that_are_padded_behind(room: int) -> None:
    inputs = attention_inputs(np.random.default_rng(1), lengths=[5, 5], steps=5, room=room, rotary=True)
    inputs["lengths"] = np.array([4, 2], np.int32)
    model = node_model("GroupQueryAttention", inputs, 3, kv_num_heads=2, num_heads=4, do_rotary=1)
    feeds = feeds_of(model, inputs)
    expected = onnxruntime_outputs(model, feeds)
    computed = onnxruntime_outputs(to_onnx(from_onnx(model)["main"]), feeds)
    for text, length in enumerate((5, 3)):
        np.testing.assert_allclose(
            computed[0][text, :length], expected[0][text, :length], rtol=1e-4, atol=1e-5
        )
        for ours, theirs in zip(computed[1:], expected[1:], strict=True):
            np.testing.assert_allclose(ours[text, :, :length], theirs[text, :, :length], rtol=1e-5)


def test_a_cache_that_slides_with_its_window_stays_one_operator() -> None:
    inputs = attention_inputs(np.random.default_rng(2), lengths=[6], steps=1, room=8)
    attrs: dict[str, Any] = {
        "num_heads": 4,
        "kv_num_heads": 2,
        "local_window_size": 8,
        "sliding_window_cache": 1,
    }
    assert domains_of(from_onnx(node_model("GroupQueryAttention", inputs, 3, **attrs))) == {MICROSOFT}


def test_a_dimension_that_the_operator_fixes_becomes_a_number() -> None:
    inputs = attention_inputs(np.random.default_rng(3), lengths=[5], steps=1, room=4)
    model = node_model("GroupQueryAttention", inputs, 3, kv_num_heads=2, num_heads=4)
    for item in model.graph.input:
        if item.name in ("pk", "pv"):
            item.type.tensor_type.shape.dim[2].dim_param = "past"
            item.type.tensor_type.shape.dim[3].dim_param = "head_size"
    module = from_onnx(model)
    assert domains_of(module) == {""}
    types = {param.name: str(param.checked_type) for param in module["main"].params}
    assert types["pk"] == types["pv"] == f"Tensor[(1, 2, past, {SIZE}), float32]"
    expected = onnxruntime_outputs(model, feeds_of(model, inputs))
    computed = onnxruntime_outputs(to_onnx(module["main"]), feeds_of(model, inputs))
    for ours, theirs in zip(computed, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
