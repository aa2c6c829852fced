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
from intarsia.native.execution.most_items import MOST_TOKENS
from intarsia.native.machine.isa import Isa
from intarsia.native.sizes import TokenAttention, attention_function
from intarsia.native.tir import default_tir
from intarsia.op.token_attention_op import token_attention_value
from intarsia.runtime.kernel import Array

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 23, 24, 25, 47, 48, 49, 97)


def kernel_of(form: TokenAttention, isa: Isa) -> RunnableKernel:
    function = attention_function(form, isa)
    verify(IRModule({GlobalVar("f"): function}))
    passes = default_tir(isa.vector_bytes, isa.vector_registers)
    return compile_kernel(passes(IRModule({GlobalVar("f"): function})).prim_func("f"), isa)


def form_of(
    heads: int, size: int, value_size: int, biases: tuple[tuple[bool, bool], ...], *, replaces: bool = False
) -> TokenAttention:
    """Return a form, given for each bias whether it differs between keys, and between heads."""
    names = ("q", "k", "v", "first", "second")[: 3 + len(biases)]
    shapes = tuple((MOST_TOKENS if by_key else 1, heads if by_head else 1) for by_key, by_head in biases)
    return TokenAttention(heads, size, value_size, 0.5, shapes, replaces, names, names, "y")


def require_right(kernel: RunnableKernel, form: TokenAttention, tokens: int) -> None:
    """Compare the result of a kernel, whose arrays end where they have to, with that of the operator."""
    rng = np.random.default_rng(tokens)
    sizes = (form.size, form.size, form.value_size)
    arrays = [rng.standard_normal((tokens, form.heads, size)).astype(np.float32) for size in sizes]
    biases = [
        rng.standard_normal((tokens if extent > 1 else 1, heads)).astype(np.float32)
        for extent, heads in form.biases
    ]
    result = np.full(arrays[2].shape, np.nan, np.float32)
    given_arrays: list[Array] = [*arrays, *biases, result, np.array(tokens, np.int64)]
    params = zip(kernel.prim_func.params, given_arrays, strict=True)
    sized = tuple(replace(param, shape=array.shape) for param, array in params)
    replace(kernel, prim_func=replace(kernel.prim_func, params=sized))(given_arrays)
    q, k, v = (array.transpose(1, 0, 2)[None] for array in arrays)
    by_key = [bias.T[None, :, None] for bias in biases]
    expected: Array = token_attention_value(q, k, v, *by_key, replaces=form.replaces, scale=0.5)
    np.testing.assert_allclose(result, expected[0].transpose(1, 0, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("isa", x86_sets())
def test_every_length_over_the_borders_of_tiles_and_panels(isa: str) -> None:
    form = form_of(2, 5, 12, ((True, False), (True, True)))
    kernel = kernel_of(form, x86_sets()[isa])
    for tokens in LENGTHS:
        require_right(kernel, form, tokens)


@settings(max_examples=examples(12), deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 9),
    st.sampled_from([1, 2, 3, 4, 6, 8, 16, 20, 48]),
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=2).map(tuple),
    st.booleans(),
    st.lists(st.integers(1, 70), min_size=1, max_size=4),
    st.sampled_from(sorted(x86_sets())),
)
def test_every_form_is_right(
    heads: int,
    size: int,
    value_size: int,
    biases: tuple[tuple[bool, bool], ...],
    replaces: bool,
    lengths: list[int],
    isa: str,
) -> None:
    form = form_of(heads, size, value_size, biases, replaces=replaces and len(biases) == 2)
    kernel = kernel_of(form, x86_sets()[isa])
    for tokens in lengths:
        require_right(kernel, form, tokens)


def test_queries_keys_and_values_may_be_the_same() -> None:
    form = replace(form_of(2, 4, 4, ()), arguments=("x", "x", "x"), params=("x",))
    kernel = kernel_of(form, x86_sets()["host"])
    x = np.random.default_rng(0).standard_normal((9, 2, 4)).astype(np.float32)
    result = np.full(x.shape, np.nan, np.float32)
    arrays: list[Array] = [x, result, np.array(9, np.int64)]
    params = zip(kernel.prim_func.params, arrays, strict=True)
    sized = tuple(replace(param, shape=array.shape) for param, array in params)
    replace(kernel, prim_func=replace(kernel.prim_func, params=sized))(arrays)
    heads = x.transpose(1, 0, 2)[None]
    expected = token_attention_value(heads, heads, heads, replaces=False, scale=0.5)
    np.testing.assert_allclose(result, expected[0].transpose(1, 0, 2), rtol=1e-4, atol=1e-5)


def test_no_tokens_write_nothing() -> None:
    form = form_of(1, 4, 4, ())
    kernel = kernel_of(form, x86_sets()["host"])
    arrays: list[Array] = [*[np.zeros((0, 1, 4), np.float32)] * 4, np.array(0, np.int64)]
    params = zip(kernel.prim_func.params, arrays, strict=True)
    sized = tuple(replace(param, shape=array.shape) for param, array in params)
    replace(kernel, prim_func=replace(kernel.prim_func, params=sized))(arrays)
