"""Attention, RotaryEmbedding, Einsum, Col2Im and GridSample on random shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from tests.compute_rule_checks import check
from tests.effort import examples
from tests.onnx_models import onnxruntime_outputs

pytestmark = pytest.mark.quick_tests(14, also=["test_col2im"])

Array = npt.NDArray[Any]

SMALL = st.integers(1, 3)
SEEDS = st.integers(0, 2**32 - 1)


def floats(seed: int, *shape: int, dtype: Any = np.float64) -> Array:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(dtype)


@given(SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SEEDS, st.data())
@settings(max_examples=examples(60, quick=6), deadline=None)
def test_attention(
    batch: int, heads: int, repeats: int, queries: int, keys: int, size: int, seed: int, data: st.DataObject
) -> None:
    cap, is_causal = data.draw(st.sampled_from((0.0, 2.0))), data.draw(st.integers(0, 1))
    attrs = dict[str, Any](is_causal=is_causal, softcap=cap)
    q, k, v = (
        floats(seed + i, batch, h, s, e)
        for i, (h, s, e) in enumerate(_shapes(heads, repeats, queries, keys, size))
    )
    if data.draw(st.booleans()):
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(batch, x.shape[2], -1) for x in (q, k, v))
        attrs |= {"q_num_heads": heads * repeats, "kv_num_heads": heads}
    mask: Array | None = None
    match data.draw(st.sampled_from(("none", "bool", "float"))):
        case "bool":
            mask = floats(seed, queries, keys) > -0.5
        case "float":
            mask = floats(seed, batch, 1, queries, keys)
    check("Attention", q, k, v, mask, tolerance=1e-6, **attrs)  # the reference rounds attributes to float32


def _shapes(heads: int, repeats: int, queries: int, keys: int, size: int) -> list[tuple[int, int, int]]:
    return [(heads * repeats, queries, size), (heads, keys, size), (heads, keys, size + 1)]


@given(SMALL, SMALL, SMALL, SMALL, SEEDS, st.integers(0, 1))
@settings(max_examples=examples(30, quick=6), deadline=None)
def test_attention_with_past(past: int, now: int, heads: int, size: int, seed: int, is_causal: int) -> None:
    q, k, v = (floats(seed + i, 2, heads, now, size) for i in range(3))
    old_k, old_v = (floats(seed + i, 2, heads, past, size) for i in (4, 5))
    attrs = dict[str, Any](is_causal=is_causal, scale=0.75)
    check("Attention", q, k, v, None, old_k, old_v, outputs=3, tolerance=1e-6, **attrs)


def test_a_query_that_may_look_nowhere_finds_zeros() -> None:
    q, k, v = (floats(i, 1, 2, 3, 4) for i in range(3))
    mask = np.array([[True, False, True], [False, False, False], [True, True, True]])
    check("Attention", q, k, v, mask, tolerance=1e-9)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_scores_of_attention(mode: int) -> None:
    q, k, v = (floats(i, 1, 2, 3, 4) for i in range(3))
    cap = 1.5 if mode else 0.0  # the reference caps the raw scores too
    attrs = dict[str, Any](is_causal=1, softcap=cap, qk_matmul_output_mode=mode)
    past = floats(7, 1, 2, 2, 4), floats(8, 1, 2, 2, 4)
    check("Attention", q, k, v, None, *past, outputs=4, tolerance=1e-6, **attrs)


@given(SMALL, SMALL, SMALL, st.sampled_from((2, 4, 6)), st.integers(0, 1), st.booleans(), SEEDS, st.data())
@settings(max_examples=examples(50, quick=6), deadline=None)
def test_rotary_embedding(
    batch: int,
    heads: int,
    steps: int,
    size: int,
    interleaved: int,
    has_heads: bool,
    seed: int,
    data: st.DataObject,
) -> None:
    turned = data.draw(st.sampled_from([0, *range(2, size + 1, 2)]))
    half = (turned or size) // 2
    x = floats(seed, batch, heads, steps, size, dtype=np.float32)
    attrs = dict[str, Any](interleaved=interleaved, rotary_embedding_dim=turned)
    if not has_heads:
        x = x.transpose(0, 2, 1, 3).reshape(batch, steps, heads * size)
    if not has_heads or turned:
        attrs["num_heads"] = heads
    if data.draw(st.booleans()):
        positions = np.random.default_rng(seed).integers(0, 5, (batch, steps))
        tables = (floats(seed + i, 5, half, dtype=np.float32) for i in (1, 2))
        check("RotaryEmbedding", x, *tables, positions, tolerance=1e-5, **attrs)
    else:
        tables = (floats(seed + i, batch, steps, half, dtype=np.float32) for i in (1, 2))
        check("RotaryEmbedding", x, *tables, tolerance=1e-5, **attrs)


EQUATIONS = [
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("ij,jk", ((2, 3), (3, 4))),
    ("ij->ji", ((2, 3),)),
    ("ba", ((2, 3),)),
    ("ij->", ((2, 3),)),
    ("i,i", ((4,), (4,))),
    ("bhid,bhjd->bhij", ((2, 1, 3, 4), (2, 1, 2, 4))),
    ("b...i,...ij->b...j", ((2, 3, 4), (3, 4, 5))),
    ("...ij,...jk", ((2, 1, 3, 4), (2, 5, 4, 2))),
    ("i,j,k->kij", ((2,), (3,), (2,))),
    ("ij,kl->il", ((2, 0), (3, 2))),
    ("ii", ((3, 3),)),
    ("bii->bi", ((2, 3, 3),)),
    ("iij,j->i", ((2, 2, 3), (3,))),
    (" i j , j -> i ", ((2, 3), (3,))),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(equation: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    operands = [floats(i, *shape) for i, shape in enumerate(shapes)]
    wanted = np.asarray(np.einsum(equation, *operands))
    check("Einsum", *operands, equation=equation, expected=[wanted], tolerance=1e-9)


def test_einsum_of_integers() -> None:
    x = np.arange(6).reshape(2, 3)
    check("Einsum", x, x, equation="ij,kj->ik", expected=[x @ x.T])


@given(SMALL, SMALL, SMALL, SMALL, st.integers(1, 2), st.integers(1, 2), st.integers(0, 1), SEEDS)
@settings(max_examples=examples(40, quick=6), deadline=None)
def test_col2im(
    channels: int, rows: int, columns: int, taps: int, stride: int, dilation: int, pad: int, seed: int
) -> None:
    reach = dilation * (taps - 1) + 1
    image = ((rows - 1) * stride + reach - pad, (columns - 1) * stride + 1)
    if image[0] < 1:
        return
    attrs = dict[str, Any](strides=(stride, stride), dilations=(dilation, 1), pads=(pad, 0, 0, 0))
    x = floats(seed, 2, channels * taps, rows * columns)
    check("Col2Im", x, np.array(image), np.array([taps, 1]), tolerance=1e-9, **attrs)


@given(
    st.sampled_from(("nearest", "linear", "cubic")),
    st.sampled_from(("zeros", "border", "reflection")),
    st.integers(0, 1),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    SEEDS,
)
@settings(max_examples=examples(80, quick=8), deadline=None)
def test_grid_sample(mode: str, padding: str, is_aligned: int, extents: list[int], seed: int) -> None:
    is_refused = (mode, padding) == (
        "cubic",
        "border",
    )  # the reference brings the place inside, not each element
    if mode == "cubic":
        extents = [extents[0], extents[-1]] if is_refused else extents[:2]
    wanted = (2, *[2] * len(extents))
    x = floats(seed, 2, 2, *extents, dtype=np.float32)
    grid = np.random.default_rng(seed).uniform(-2, 2, (*wanted, len(extents))).astype(np.float32)
    if is_aligned and padding == "reflection" and 1 in extents:
        return  # the reference divides by zero
    attrs = dict[str, Any](mode=mode, padding_mode=padding, align_corners=is_aligned)
    expected = by_onnxruntime(x, grid, **attrs) if is_refused else None
    check("GridSample", x, grid, tolerance=1e-4, expected=expected, **attrs)


def by_onnxruntime(x: npt.NDArray[Any], grid: npt.NDArray[Any], **attrs: Any) -> list[npt.NDArray[Any]]:
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], **attrs)
    values = [helper.make_tensor_value_info(name, 1, each.shape) for name, each in (("x", x), ("grid", grid))]
    graph = helper.make_graph([node], "g", values, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnxruntime_outputs(model, {"x": x, "grid": grid})


def test_grids_that_are_not_numbers_read_nothing_outside() -> None:
    x, grid = floats(0, 1, 1, 3, 3, dtype=np.float32), np.full((1, 1, 3, 2), np.nan, np.float32)
    grid[0, 0, 1], grid[0, 0, 2] = np.inf, -1e30
    check("GridSample", x, grid, expected=[np.zeros((1, 1, 1, 3), np.float32)])
