"""Loop functions between texts and their tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import RunnableKernel, compile_kernel, x86_sets

from intarsia.ir import DType, GlobalVar, IRModule
from intarsia.ir.verify import verify
from intarsia.native.execution.item_kind import ItemKind
from intarsia.native.machine.isa import Isa
from intarsia.native.sizes import TextLoops, spread_dag, text_function, text_loops_of
from intarsia.native.sizes.text_loops import NEIGHBOURS, POSITIONS
from intarsia.native.tir import default_tir
from intarsia.op.token_append_op import token_append_value
from intarsia.op.token_pool_op import POOL_MODES, token_pool_value
from intarsia.op.token_positions_op import token_positions_value
from intarsia.op.token_window_op import token_window_value
from intarsia.runtime.kernel import Array

SIZES = ((1, 1), (1, 7), (3, 1), (2, 5), (5, 13), (7, 2))
"""Numbers of texts, and of tokens of each."""


def kernel_of(form: TextLoops, isa: Isa, *, is_parallel: bool = False) -> RunnableKernel:
    function = text_function(form, isa, is_parallel=is_parallel)
    verify(IRModule({GlobalVar("f"): function}))
    passes = default_tir(isa.vector_bytes, isa.vector_registers)
    return compile_kernel(passes(IRModule({GlobalVar("f"): function})).prim_func("f"), isa)


def run(kernel: RunnableKernel, sources: list[Array], result: Array, *numbers: int) -> None:
    """Run a kernel on arrays that end where they have to."""
    arrays: list[Array] = [*sources, result, *(np.array(number, np.int64) for number in numbers)]
    params = zip(kernel.prim_func.params, arrays, strict=True)
    sized = tuple(replace(param, shape=array.shape) for param, array in params)
    replace(kernel, prim_func=replace(kernel.prim_func, params=sized))(arrays)


def some(dtype: DType, *shape: int) -> Array:
    return np.random.default_rng(shape).integers(-9, 9, shape).astype(dtype.numpy)


@settings(max_examples=examples(40, 12), deadline=None)
@given(
    st.sampled_from(POOL_MODES),
    st.integers(1, 200),
    st.sampled_from([DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64]),
    st.booleans(),
    st.sampled_from(sorted(x86_sets())),
)
def test_each_text_has_one_value_of_its_tokens(
    mode: str, columns: int, dtype: DType, is_parallel: bool, isa: str
) -> None:
    if mode == "mean" and not dtype.is_float:
        mode = "sum"
    kernel = kernel_of(TextLoops(("x",), "y", columns, dtype, mode), x86_sets()[isa], is_parallel=is_parallel)
    for texts, tokens in SIZES:
        source = some(dtype, texts * tokens, columns)
        result = np.full((texts, columns), 77, dtype.numpy)
        run(kernel, [source], result, texts, tokens)
        expected = token_pool_value(source.reshape(texts, tokens, columns), 1, False, mode)
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["sum", "max", "min"])
def test_no_tokens_are_the_neutral_element(mode: str) -> None:
    kernel = kernel_of(TextLoops(("x",), "y", 5, DType.FLOAT32, mode), x86_sets()["host"])
    result = np.full((2, 5), np.nan, np.float32)
    run(kernel, [np.zeros((0, 5), np.float32)], result, 2, 0)
    assert np.all(result == {"sum": 0, "max": -np.inf, "min": np.inf}[mode])


def test_a_nan_is_the_largest_and_the_least() -> None:
    source = np.array([[1, np.nan, 2]], np.float32).T.copy()
    for mode in ("max", "min"):
        result = np.zeros((1, 1), np.float32)
        run(
            kernel_of(TextLoops(("x",), "y", 1, DType.FLOAT32, mode), x86_sets()["host"]),
            [source],
            result,
            1,
            3,
        )
        assert np.isnan(result).all()


@settings(max_examples=examples(20, 8), deadline=None)
@given(
    st.sampled_from([ItemKind.TEXTS, ItemKind.POSITIONS]),
    st.integers(1, 200),
    st.sampled_from([DType.FLOAT32, DType.INT64, DType.UINT8, DType.BOOL]),
    st.sampled_from(sorted(x86_sets())),
)
def test_items_are_copied_to_tokens(source: ItemKind, columns: int, dtype: DType, isa: str) -> None:
    dag = spread_dag(columns, dtype, source)
    form = text_loops_of(dag)
    assert form is not None
    kernel = kernel_of(form, x86_sets()[isa])
    for texts, tokens in SIZES:
        items = some(dtype, texts if source is ItemKind.TEXTS else tokens, columns)
        result = np.zeros((texts * tokens, columns), dtype.numpy)
        run(kernel, [items], result, texts, tokens)
        grid = items[:, None] if source is ItemKind.TEXTS else items[None]
        expected = np.broadcast_to(grid, (texts, tokens, columns)).reshape(result.shape)
        assert np.array_equal(result, expected)


@settings(max_examples=examples(20, 8), deadline=None)
@given(
    st.integers(-9, 9),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 100),
    st.sampled_from([DType.FLOAT32, DType.INT64]),
    st.booleans(),
    st.sampled_from(sorted(x86_sets())),
)
def test_tokens_have_their_neighbours_beside_them(
    first: int, count: int, step: int, columns: int, dtype: DType, is_parallel: bool, isa: str
) -> None:
    form = TextLoops(("x",), "y", columns, dtype, NEIGHBOURS, heads=count, first=first, step=step)
    kernel = kernel_of(form, x86_sets()[isa], is_parallel=is_parallel)
    for texts, tokens in SIZES:
        source = some(dtype, texts, tokens, columns)
        result = np.full((texts, tokens, count, columns), 77, dtype.numpy)
        run(kernel, [source], result, texts, tokens)
        assert np.array_equal(result, token_window_value(source, first, count, step))


@settings(max_examples=examples(12, 6), deadline=None)
@given(st.integers(1, 100), st.integers(0, 30), st.sampled_from(sorted(x86_sets())))
def test_positions_may_be_counted_behind_the_past(columns: int, past: int, isa: str) -> None:
    form = text_loops_of(spread_dag(columns, DType.FLOAT32, ItemKind.POSITIONS, is_behind_past=True))
    assert form is not None
    assert form.reads_past
    kernel = kernel_of(form, x86_sets()[isa])
    for texts, tokens in SIZES:
        table = some(DType.FLOAT32, past + tokens, columns)
        result = np.zeros((texts * tokens, columns), np.float32)
        run(kernel, [table], result, texts, tokens, past)
        assert np.array_equal(result, np.tile(table[past:], (texts, 1)))


@settings(max_examples=examples(20, 8), deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 100),
    st.integers(0, 30),
    st.sampled_from([DType.FLOAT32, DType.INT64]),
    st.booleans(),
    st.sampled_from(sorted(x86_sets())),
)
def test_new_tokens_are_written_behind_the_past(
    heads: int, size: int, past: int, dtype: DType, is_parallel: bool, isa: str
) -> None:
    form = TextLoops(("p", "n"), "y", size, dtype, "", ItemKind.PAST, heads)
    kernel = kernel_of(form, x86_sets()[isa], is_parallel=is_parallel)
    for texts, tokens in SIZES:
        before, new = some(dtype, texts, heads, past, size), some(dtype, texts, tokens, heads, size)
        result = np.zeros((texts, heads, past + tokens, size), dtype.numpy)
        run(kernel, [before, new], result, texts, tokens, past)
        assert np.array_equal(result, token_append_value(before, new.swapaxes(1, 2)))


@pytest.mark.parametrize("dtype", [DType.INT64, DType.INT32])
@pytest.mark.parametrize("mode", sorted(POSITIONS))
def test_positions_are_counted(mode: str, dtype: DType) -> None:
    kernel = kernel_of(TextLoops(("x",), "y", 1, dtype, POSITIONS[mode]), x86_sets()["host"])
    for texts, tokens in SIZES:
        keys = tokens + 4
        shape = {"sum": (texts, tokens), "tail": (texts, keys), "positions": (texts, 1), "start": (texts,)}[
            mode
        ]
        x, like = some(dtype, *shape), np.zeros((texts, tokens))
        expected = token_positions_value(x, like, mode)
        result = np.full((expected.size, 1), 77, dtype.numpy)
        numbers = (texts, tokens, keys) if mode == "tail" else (texts, tokens)
        run(kernel, [x.reshape(-1, 1)], result, *numbers)
        assert np.array_equal(result.reshape(expected.shape), expected)


@pytest.mark.parametrize("isa", x86_sets())
def test_new_tokens_are_where_each_text_says(isa: str) -> None:
    form = TextLoops(
        ("past", "new", "starts"), "y", 5, DType.FLOAT32, "", ItemKind.PAST, heads=2, has_starts=True
    )
    kernel = kernel_of(form, x86_sets()[isa])
    for texts, tokens, past in ((1, 1, 0), (3, 1, 7), (2, 5, 3), (4, 2, 2)):
        before, new = some(DType.FLOAT32, texts, 2, past, 5), some(DType.FLOAT32, texts, tokens, 2, 5)
        starts = np.array([-3, 0, past, past + 2, 1][:texts])
        result = np.full((texts * 2 * (past + tokens), 5), np.nan, np.float32)
        sources = [before.reshape(-1, 5), new.reshape(-1, 5), starts]
        run(kernel, sources, result, texts, tokens, past)
        expected = token_append_value(before, new.swapaxes(1, 2), starts)
        assert np.array_equal(result, expected.reshape(result.shape))
