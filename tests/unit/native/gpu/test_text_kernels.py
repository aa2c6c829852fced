"""Kernels on texts of any length compute what operators do, on each level of proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.gpu_on_cpu.kernel_checks import interpreted, on_this_cpu
from tests.gpu_on_cpu.ptxas_checks import assert_text_resources, needs_ptxas
from tests.sized_params import with_sized_params
from tests.tir_checks import in_module

from intarsia.ir import DType, PrimFunc
from intarsia.ir.parser import parse_module
from intarsia.ir.prim_func import Allocate, Barrier, Block, For, ForKind, Statement
from intarsia.ir.verify import verify
from intarsia.native.execution.item_kind import ItemKind
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import MODELS
from intarsia.native.gpu.text_kernels import text_kernel
from intarsia.native.gpu.token_attention_kernel import token_attention_kernel
from intarsia.native.gpu.token_filter_kernel import token_filter_kernel
from intarsia.native.sizes import TextLoops, TokenAttention, TokenFilter
from intarsia.native.sizes.text_loops import NEIGHBOURS
from intarsia.native.tir import SplitAtBarriers
from intarsia.native.tir.rewriting import block, with_body, with_kernels
from intarsia.op.token_append_op import token_append_value
from intarsia.op.token_attention_op import token_attention_value
from intarsia.op.token_filter_op import token_filter_value
from intarsia.op.token_pool_op import POOL_MODES, token_pool_value
from intarsia.op.token_window_op import token_window_value
from intarsia.runtime.kernel import Array
from intarsia.support.errors import IntarsiaError

LENGTHS = (1, 7, 64, 67, 131)
QUICK = 7
lengths = pytest.mark.parametrize(
    "length",
    [pytest.param(length, marks=() if length == QUICK else pytest.mark.slow) for length in LENGTHS],
)
FORM = TokenAttention(
    *(4, 2, True, 5, 6, 0.5),
    *(((MOST_ITEMS, 1), (1, 4)), False, ("q", "k", "v", "b", "c"), ("q", "k", "v", "b", "c"), "y"),
)
"""Grouped attention with a past and two biases, by key, and by head for keys behind the query."""
ATTENTION = {
    "grouped": FORM,
    "replaced": replace(FORM, replaces=True),
    "cleared": replace(FORM, clears=True),
    "plain": replace(
        FORM, shared_heads=4, is_joined=False, biases=(), arguments=("q", "k", "v"), params=("q", "k", "v")
    ),
}


def numbers(**values: int) -> dict[str, Array]:
    return {name: np.full((), value, np.int64) for name, value in values.items()}


def check(
    function: PrimFunc,
    inputs: dict[str, Array],
    expected: Array,
    blocks: int,
    *,
    is_compiled: bool = True,
) -> None:
    """Fail unless so many blocks of a kernel write what is expected, and nothing outside of it."""
    verify(in_module(function))
    assert str(parse_module(str(in_module(function)))) == str(in_module(function))
    sized = with_sized_params(function, {**inputs, "y": expected}, blocks)
    split = SplitAtBarriers()(in_module(sized))
    verify(split)
    results = [interpreted(sized, inputs), interpreted(split.prim_func("f"), inputs)]
    if is_compiled:
        results += [on_this_cpu(sized, inputs, is_descending=down) for down in (False, True)]
    for written in results:
        np.testing.assert_allclose(written["y"], expected, rtol=1e-4, atol=1e-5)


def attention_case(
    form: TokenAttention, length: int, texts: int = 2, past: int = 3
) -> tuple[dict[str, Array], Array]:
    """Inputs of an attention, and its result."""
    rng, past = np.random.default_rng(length), past if form.is_joined else 0
    keys, heads = length + past, form.heads

    def some(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float32)

    q = some(texts * length, heads, form.size)
    k, v = (some(texts, form.shared_heads, keys, size) for size in (form.size, form.value_size))
    biases = [some(texts * keys if extent > 1 else 1, columns) for extent, columns in form.biases]
    if form.clears:
        biases[0][rng.integers(0, 3, biases[0].shape) > 0] = -np.inf
        biases[1][:] = -np.inf

    def by_head(array: Array, count: int) -> Array:
        return array.reshape(count, -1, *array.shape[1:]).swapaxes(1, 2)

    by_key = [by_head(bias, texts if len(bias) > 1 else 1)[:, :, None] for bias in biases]
    first, second, *_ = (*by_key, None, None)
    expected = token_attention_value(
        by_head(q, texts), k, v, first, second, replaces=form.replaces, scale=form.scale, clears=form.clears
    )
    if form.is_joined:
        k, v = k.reshape(-1, 1, form.size), v.reshape(-1, 1, form.value_size)
    else:
        k, v = (np.ascontiguousarray(x.swapaxes(1, 2)).reshape(-1, heads, x.shape[-1]) for x in (k, v))
    arrays = dict(zip(form.arguments, (q, k, v, *biases), strict=True))
    given = numbers(texts=texts, length=length, **({"keys": keys} if form.is_joined else {}))
    result = expected.swapaxes(1, 2).reshape(texts * length, heads, form.value_size)
    return {**arrays, **given}, np.ascontiguousarray(result)


@pytest.mark.parametrize(
    ("name", "length"),
    [
        pytest.param(name, length, marks=() if (name, length) == ("grouped", QUICK) else pytest.mark.slow)
        for name in ATTENTION
        for length in LENGTHS
    ],
)
def test_attention_among_any_number_of_tokens(name: str, length: int) -> None:
    form = ATTENTION[name]
    inputs, expected = attention_case(form, length, texts=2 if length == 1 else 1)
    rows = len(expected) * form.heads
    check(token_attention_kernel(form, "sm_80").function, inputs, expected, rows, is_compiled=length != 131)


@lengths
@pytest.mark.parametrize("mode", POOL_MODES)
def test_a_text_has_one_value_of_its_tokens(mode: str, length: int) -> None:
    x = np.random.default_rng(length).integers(-9, 9, (3 * length, 37)).astype(np.float32)
    function = text_kernel(TextLoops(("x",), "y", 37, DType.FLOAT32, mode)).function
    expected = token_pool_value(x.reshape(3, length, 37), 1, False, mode)
    check(function, {"x": x, **numbers(texts=3, length=length)}, expected, 3)


@lengths
@pytest.mark.parametrize("columns", [3, 300])
def test_tokens_get_their_neighbours(columns: int, length: int) -> None:
    x = np.random.default_rng(columns).standard_normal((2, length, columns)).astype(np.float32)
    form = TextLoops(("x",), "y", columns, DType.FLOAT32, NEIGHBOURS, heads=3, first=-4, step=3)
    expected = token_window_value(x, -4, 3, 3).reshape(-1, columns)
    given = {"x": x.reshape(-1, columns), **numbers(texts=2, length=length)}
    check(text_kernel(form).function, given, expected, 6 * length)


@lengths
@pytest.mark.parametrize("columns", [3, 300])
def test_tokens_sum_up_their_neighbours(columns: int, length: int) -> None:
    rng = np.random.default_rng(columns)
    x, taps = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((2, length, columns), (3, columns))
    )
    form = TokenFilter("x", "w", ("x", "w"), "y", 3, columns, DType.FLOAT32, -4, 3)
    expected = token_filter_value(x, taps, -4, 3).reshape(-1, columns)
    given = {"x": x.reshape(-1, columns), "w": taps, **numbers(texts=2, length=length)}
    check(token_filter_kernel(form).function, given, expected, 2 * length)


@lengths
@pytest.mark.parametrize("columns", [3, 300])
def test_tokens_get_what_their_text_has(columns: int, length: int) -> None:
    x = np.random.default_rng(columns).standard_normal((2, columns)).astype(np.float32)
    function = text_kernel(TextLoops(("x",), "y", columns, DType.FLOAT32)).function
    check(function, {"x": x, **numbers(texts=2, length=length)}, np.repeat(x, length, axis=0), 2 * length)


@lengths
@pytest.mark.parametrize("past", [0, 5])
@pytest.mark.parametrize("has_starts", [False, True])
def test_new_tokens_are_joined_with_the_past(has_starts: bool, past: int, length: int) -> None:
    rng, texts, heads, size = np.random.default_rng(length), 2, 3, 4
    before = rng.standard_normal((texts, heads, past, size)).astype(np.float32)
    new = rng.standard_normal((texts, heads, length, size)).astype(np.float32)
    starts = rng.integers(0, past + 1, texts) if has_starts else None
    reads = ("p", "n", "s") if has_starts else ("p", "n")
    form = TextLoops(
        reads, "y", size, DType.FLOAT32, "", ItemKind.PAST, heads, has_starts=has_starts, params=reads
    )
    arrays: dict[str, Array] = {
        "p": before.reshape(-1, size),
        "n": np.ascontiguousarray(new.swapaxes(1, 2)).reshape(-1, size),
        **({} if starts is None else {"s": starts}),
    }
    expected = np.asarray(token_append_value(before, new, *([] if starts is None else [starts])))
    given = numbers(texts=texts, length=length, past=past)
    check(text_kernel(form).function, {**arrays, **given}, expected.reshape(-1, size), 6 * (past + length))


@lengths
def test_positions_follow_the_start_of_their_text(length: int) -> None:
    starts = np.array([[5], [0], [9]], np.int64)
    function = text_kernel(TextLoops(("x",), "y", 1, DType.INT64, "positions")).function
    expected = np.concatenate([start + np.arange(length) for start in starts])[:, None]
    check(function, {"x": starts, **numbers(texts=3, length=length)}, expected, len(expected))


@lengths
def test_sums_run_along_a_text(length: int) -> None:
    mask = np.random.default_rng(length).integers(0, 2, (2 * length, 1))
    function = text_kernel(TextLoops(("x",), "y", 1, DType.INT64, "running sum")).function
    expected = np.cumsum(mask.reshape(2, length), 1).reshape(-1, 1)
    check(function, {"x": mask, **numbers(texts=2, length=length)}, expected, 2)


@lengths
def test_a_mask_ends_with_its_new_tokens(length: int) -> None:
    mask = np.arange(2 * (length + 3))[:, None]
    function = text_kernel(TextLoops(("x",), "y", 1, DType.INT64, "tail")).function
    expected = mask.reshape(2, -1)[:, 3:].reshape(-1, 1)
    check(function, {"x": mask, **numbers(texts=2, length=length, keys=length + 3)}, expected, len(expected))


def without_barrier(number: int) -> Callable[[Statement], Statement]:
    """What a statement is without one of its barriers."""
    seen = 0

    def changed(statement: Statement) -> Statement:
        nonlocal seen
        match statement:
            case Barrier():
                seen += 1
                return Block(()) if seen - 1 == number else statement
            case Block():
                return block([changed(inner) for inner in statement.statements])
            case For(kind=ForKind.BLOCK | ForKind.THREAD):
                return with_body(statement, changed(statement.body))
            case Allocate():
                return with_body(statement, changed(statement.body))
            case _:
                return statement

    return changed


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_barrier_is_found(number: int) -> None:
    form = ATTENTION["plain"]
    inputs, expected = attention_case(form, 2, texts=1)
    function = token_attention_kernel(form, "sm_80").function
    broken = with_kernels(function, without_barrier(number))
    assert broken != function
    with pytest.raises(IntarsiaError, match="race"):
        interpreted(with_sized_params(broken, {**inputs, "y": expected}, 8), inputs)


@needs_ptxas
@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ATTENTION)
def test_kernels_need_few_registers_and_spill_none(name: str, model: str) -> None:
    kernels = emit_kernels(token_attention_kernel(ATTENTION[name], model).function, "k", model)
    assert len(assert_text_resources(kernels.text, model, 96)) == 1
