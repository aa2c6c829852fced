"""The loop function of attention among any number of tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import RunnableKernel, compile_kernel, x86_sets

from intarsia.ir import GlobalVar, IRModule
from intarsia.ir.verify import verify
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.machine.isa import Isa
from intarsia.native.sizes import TokenAttention, attention_function
from intarsia.native.tir import default_tir
from intarsia.op.token_attention_op import ANCHORS, token_attention_value
from intarsia.runtime.kernel import Array

_MOST = 100
"""Maximum number of keys that tables are for."""
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 23, 24, 25, 47, 48, 49, 97)


def kernel_of(form: TokenAttention, isa: Isa) -> RunnableKernel:
    function = attention_function(form, isa, threads=2)
    verify(IRModule({GlobalVar("f"): function}))
    passes = default_tir(isa.vector_bytes, isa.vector_registers)
    return compile_kernel(passes(IRModule({GlobalVar("f"): function})).prim_func("f"), isa)


def form_of(
    heads: int,
    size: int,
    value_size: int,
    biases: tuple[tuple[bool, bool], ...],
    *,
    replaces: bool = False,
    shared_heads: int | None = None,
    is_joined: bool = False,
    clears: bool = False,
    table: str = "",
    has_starts: bool = False,
) -> TokenAttention:
    """Return a form, given for each bias whether it differs between keys, and between heads."""
    names = ("q", "k", "v", "first", "second")[: 3 + len(biases)]
    names += (*(("table",) if table else ()), *(("starts",) if has_starts else ()))
    shapes = tuple((MOST_ITEMS if by_key else 1, heads if by_head else 1) for by_key, by_head in biases)
    form = TokenAttention(
        heads, shared_heads or heads, is_joined, size, value_size, 0.5, shapes, replaces, names, names, "y"
    )
    return replace(
        form,
        clears=clears,
        table=(heads, 2 * _MOST + 96) if table else None,
        anchor=table or "query",
        starts=MOST_ITEMS if has_starts else None,
    )


def require_right(kernel: RunnableKernel, form: TokenAttention, tokens: int, texts: int = 1) -> None:
    """Compare the result of a kernel, whose arrays end where they have to, with that of the operator."""
    rng = np.random.default_rng(tokens)
    sizes, count = (form.size, form.size, form.value_size), texts * tokens
    arrays = [rng.standard_normal((count, form.heads, size)).astype(np.float32) for size in sizes]
    biases = [
        rng.standard_normal((count if extent > 1 else 1, heads)).astype(np.float32)
        for extent, heads in form.biases
    ]
    result = np.full(arrays[2].shape, np.nan, np.float32)
    numbers = [np.array(number, np.int64) for number in (texts, tokens)]
    given_arrays: list[Array] = [*arrays, *biases, result, *numbers]
    params = zip(kernel.prim_func.params, given_arrays, strict=True)
    sized = tuple(replace(param, shape=array.shape) for param, array in params)
    replace(kernel, prim_func=replace(kernel.prim_func, params=sized))(given_arrays)

    def by_head(array: Array) -> Array:
        return array.reshape(texts if len(array) > 1 else 1, -1, *array.shape[1:]).swapaxes(1, 2)

    q, k, v = map(by_head, arrays)
    by_key = [by_head(bias)[:, :, None] for bias in biases]
    expected: Array = token_attention_value(q, k, v, *by_key, replaces=form.replaces, scale=0.5)
    np.testing.assert_allclose(result, expected.swapaxes(1, 2).reshape(result.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("isa", x86_sets())
def test_every_length_over_the_borders_of_tiles_and_panels(isa: str) -> None:
    form = form_of(2, 5, 12, ((True, False), (True, True)))
    kernel = kernel_of(form, x86_sets()[isa])
    for tokens in LENGTHS:
        require_right(kernel, form, tokens)


@pytest.mark.parametrize("isa", x86_sets())
def test_texts_read_their_tokens_alone(isa: str) -> None:
    form = form_of(2, 5, 12, ((True, False), (True, True)))
    kernel = kernel_of(form, x86_sets()[isa])
    for texts, tokens in ((2, 1), (3, 7), (5, 9), (2, 49)):
        require_right(kernel, form, tokens, texts)


def require_right_with_past(
    kernel: RunnableKernel, form: TokenAttention, texts: int, tokens: int, past: int
) -> None:
    """Compare the result of a kernel with keys and values of the past with that of the operator."""
    rng, keys = np.random.default_rng(past), tokens + past
    shapes = [(texts, form.shared_heads, keys, size) for size in (form.size, form.value_size)]
    k, v = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    q = rng.standard_normal((texts * tokens, form.heads, form.size)).astype(np.float32)
    biases = [
        rng.standard_normal((texts * keys if extent > 1 else 1, heads)).astype(np.float32)
        for extent, heads in form.biases
    ]
    if form.clears:
        for bias in biases:
            bias[rng.integers(0, 3, bias.shape) > 0] = -np.inf
    table = None if form.table is None else rng.standard_normal(form.table).astype(np.float32)
    starts = None if form.starts is None else rng.integers(0, past + 1, texts)
    result = np.full((texts * tokens, form.heads, form.value_size), np.nan, np.float32)
    numbers = [np.array(number, np.int64) for number in (texts, tokens, keys)]
    others = [item for item in (table, starts) if item is not None]
    arrays: list[Array] = [q, k, v, *biases, *others, result, *numbers]
    params = zip(kernel.prim_func.params, arrays, strict=True)
    sized = tuple(replace(param, shape=array.shape) for param, array in params)
    replace(kernel, prim_func=replace(kernel.prim_func, params=sized))(arrays)

    def by_head(array: Array) -> Array:
        return array.reshape(texts if len(array) > 1 else 1, -1, *array.shape[1:]).swapaxes(1, 2)

    by_key = [by_head(bias)[:, :, None] for bias in biases]
    first, second, *_ = (*by_key, None, None)
    expected: Array = token_attention_value(
        by_head(q),
        k,
        v,
        first,
        second,
        table,
        starts,
        replaces=form.replaces,
        scale=0.5,
        clears=form.clears,
        anchor=form.anchor,
    )
    np.testing.assert_allclose(result, expected.swapaxes(1, 2).reshape(result.shape), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("isa", x86_sets())
def test_the_step_of_a_decoder(isa: str) -> None:
    """One token; keys end at both borders of panels."""
    form = form_of(4, 20, 12, ((True, False), (False, True)), shared_heads=2, is_joined=True)
    kernel = kernel_of(form, x86_sets()[isa])
    for texts, past in ((1, 0), (2, 5), (1, 11), (1, 12), (3, 23), (1, 46), (1, 47), (2, 48), (1, 100)):
        require_right_with_past(kernel, form, texts, 1, past)


@settings(max_examples=examples(24, 8), deadline=None)
@given(
    st.sampled_from([(1, 1), (2, 2), (4, 2), (6, 2), (3, 1)]),
    st.integers(1, 9),
    st.sampled_from([1, 3, 8, 16, 20, 48]),
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=2).map(tuple),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 20), st.integers(0, 70)), min_size=1, max_size=4),
    st.sampled_from(sorted(x86_sets())),
)
def test_keys_of_the_past_are_seen_by_all(
    heads: tuple[int, int],
    size: int,
    value_size: int,
    biases: tuple[tuple[bool, bool], ...],
    replaces: bool,
    sizes: list[tuple[int, int, int]],
    isa: str,
) -> None:
    form = form_of(
        heads[0],
        size,
        value_size,
        biases,
        replaces=replaces and len(biases) == 2,
        shared_heads=heads[1],
        is_joined=True,
    )
    kernel = kernel_of(form, x86_sets()[isa])
    for texts, tokens, past in sizes:
        require_right_with_past(kernel, form, texts, tokens, past)


@settings(max_examples=examples(40, 4), deadline=None)
@given(
    st.sampled_from([(1, 1), (4, 2), (3, 1)]),
    st.integers(1, 9),
    st.sampled_from([1, 8, 20]),
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=2).map(tuple),
    st.booleans(),
    st.sampled_from(["", *ANCHORS]),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 20), st.integers(0, 70)), min_size=1, max_size=4),
    st.sampled_from(sorted(x86_sets())),
)
def test_masked_rows_tables_and_first_positions(
    heads: tuple[int, int],
    size: int,
    value_size: int,
    biases: tuple[tuple[bool, bool], ...],
    replaces: bool,
    table: str,
    has_starts: bool,
    sizes: list[tuple[int, int, int]],
    isa: str,
) -> None:
    form = form_of(
        heads[0],
        size,
        value_size,
        biases,
        replaces=replaces and len(biases) == 2,
        shared_heads=heads[1],
        is_joined=True,
        clears=True,
        table=table,
        has_starts=has_starts and table != "query",
    )
    kernel = kernel_of(form, x86_sets()[isa])
    for texts, tokens, past in sizes:
        require_right_with_past(kernel, form, texts, tokens, past)


@settings(max_examples=examples(12), deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 9),
    st.sampled_from([1, 2, 3, 4, 6, 8, 16, 20, 48]),
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=2).map(tuple),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 70)), min_size=1, max_size=4),
    st.sampled_from(sorted(x86_sets())),
)
def test_every_form_is_right(
    heads: int,
    size: int,
    value_size: int,
    biases: tuple[tuple[bool, bool], ...],
    replaces: bool,
    sizes: list[tuple[int, int]],
    isa: str,
) -> None:
    form = form_of(heads, size, value_size, biases, replaces=replaces and len(biases) == 2)
    kernel = kernel_of(form, x86_sets()[isa])
    for texts, tokens in sizes:
        require_right(kernel, form, tokens, texts)


def test_queries_keys_and_values_may_be_the_same() -> None:
    form = replace(form_of(2, 4, 4, ()), arguments=("x", "x", "x"), params=("x",))
    kernel = kernel_of(form, x86_sets()["host"])
    x = np.random.default_rng(0).standard_normal((9, 2, 4)).astype(np.float32)
    result = np.full(x.shape, np.nan, np.float32)
    arrays: list[Array] = [x, result, np.array(1, np.int64), np.array(9, np.int64)]
    params = zip(kernel.prim_func.params, arrays, strict=True)
    sized = tuple(replace(param, shape=array.shape) for param, array in params)
    replace(kernel, prim_func=replace(kernel.prim_func, params=sized))(arrays)
    heads = x.transpose(1, 0, 2)[None]
    expected = token_attention_value(heads, heads, heads, replaces=False, scale=0.5)
    np.testing.assert_allclose(result, expected[0].transpose(1, 0, 2), rtol=1e-4, atol=1e-5)


def test_no_tokens_write_nothing() -> None:
    form = form_of(1, 4, 4, ())
    kernel = kernel_of(form, x86_sets()["host"])
    arrays: list[Array] = [*[np.zeros((0, 1, 4), np.float32)] * 4, *(np.array(n, np.int64) for n in (3, 0))]
    params = zip(kernel.prim_func.params, arrays, strict=True)
    sized = tuple(replace(param, shape=array.shape) for param, array in params)
    replace(kernel, prim_func=replace(kernel.prim_func, params=sized))(arrays)
