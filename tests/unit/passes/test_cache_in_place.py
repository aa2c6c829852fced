"""A decoder with a cache of fixed capacity computes what it computes with one that grows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decoders import FORMS, GPT2, Attention, DecoderSize, Family, Positions, cached_program, decoder

from intarsia import build
from intarsia.ir import Call, Op, post_order
from intarsia.ir.cache import CacheState, cache_of
from intarsia.ir.parser import parse_module
from intarsia.op import verify
from intarsia.op.infer import infer_types
from intarsia.passes import BindDims, CacheInPlace, SpecializeCache
from intarsia.runtime.kernel import Array
from intarsia.support.errors import UsageError


@st.composite
def sizes(draw: st.DrawFn) -> DecoderSize:
    family = draw(st.sampled_from(Family))
    shared = draw(st.integers(1, 3))
    heads = shared * draw(st.integers(1, 3)) if family is Family.LLAMA else shared
    has_mask = draw(st.booleans())
    allowed = [item for item in Positions if has_mask or item is not Positions.MASK]
    return DecoderSize(
        family,
        draw(st.integers(1, 3)),
        heads * draw(st.sampled_from([2, 4, 6])),
        heads,
        shared if family is Family.LLAMA else heads,
        8,
        11,
        64,
        has_mask,
        draw(st.sampled_from(allowed)),
        draw(st.sampled_from(Attention)),
    )


def both_results(
    size: DecoderSize, batch: int, valid: int, room: int, new: int, seed: int, is_simplified: bool
) -> tuple[list[Array], list[Array]]:
    """Results with a past of `valid` tokens, and with more room, which contains other numbers."""
    before, after = decoder(size), cached_program(size, (room,), is_simplified=is_simplified)
    random = np.random.default_rng(seed)
    tokens = random.integers(0, size.vocabulary, (batch, new))
    positions = np.tile(np.arange(valid, valid + new), (batch, 1))
    mask = np.ones((batch, valid + new), np.int64)
    holes = np.concatenate(
        [mask[:, :valid], np.zeros((batch, room - valid), np.int64), mask[:, valid:]], axis=1
    )
    rows = {"input_ids": tokens, "position_ids": positions}
    small = rows | {"attention_mask": mask}
    large = rows | {"attention_mask": holes, "cache_length": np.array([valid])}
    cache = cache_of(after["main"])
    assert cache is not None
    for state in cache.states:
        shape = (batch, size.shared_heads, room, size.head_width)
        large[state.input] = random.normal(size=shape).astype(np.float32)
        small[state.input] = np.ascontiguousarray(large[state.input][:, :, :valid])
    results = []
    for mod, inputs in ((before, small), (after, large)):
        with build(mod) as exe:
            results.append(list(exe({info.name: inputs[info.name] for info in exe.inputs})))
    return results[0], results[1]


@given(
    sizes(),
    st.integers(1, 2),
    st.integers(0, 6),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 99),
    st.booleans(),
)
def test_room_that_is_not_valid_changes_nothing(
    size: DecoderSize, batch: int, valid: int, more: int, new: int, seed: int, is_simplified: bool
) -> None:
    before, after = both_results(size, batch, valid, valid + more, new, seed, is_simplified)
    np.testing.assert_allclose(after[0], before[0], rtol=1e-4, atol=1e-5)
    for present, added in zip(before[1:], after[1:], strict=True):
        np.testing.assert_allclose(added, present[:, :, valid:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_no_joined_keys_and_values_are_left(form: str) -> None:
    size = FORMS[form]
    mod = cached_program(size, (16,))
    verify(mod)
    joined = [
        node
        for node in post_order(mod["main"])
        if isinstance(node, Call)
        and node.op == Op("Concat")
        and any(arg in mod["main"].params for arg in node.args)
    ]
    assert not joined
    cache = cache_of(mod["main"])
    assert cache is not None
    assert cache.states[0] == CacheState("past_key_values.0.key", "present.0.key", 2)
    assert len(cache.states) == 2 * size.layers
    assert cache.token_outputs == (("logits", 1),)
    assert cache.mask == ("attention_mask" if size.has_mask else "")
    assert bool(cache.length) == (size.positions is Positions.PAST_LENGTH)


@pytest.mark.parametrize(
    "program",
    [
        "def @main(%x: Tensor[(n, 3), float32]) { Relu(%x) }",
        # a result that grows, but with a length that no symbol counts
        """def @main(%x: Tensor[(1, n), float32], %past: Tensor[(1, 4), float32]) {
             (%x, Concat(%past, %x, axis=1)) }""",
        # scores that are a result: there is nothing to mask them for
        """def @main(%q: Tensor[(1, 2, n, 4), float32], %past: Tensor[(1, 2, p, 4), float32],
               %new: Tensor[(1, 2, n, 4), float32]) {
             %keys = Concat(%past, %new, axis=2);
             (MatMul(%q, Transpose(%keys, perm=[0, 1, 3, 2])), %keys) }""",
    ],
)
def test_other_programs_stay(program: str) -> None:
    mod = infer_types(parse_module(program))
    assert CacheInPlace()(mod) is mod
    assert SpecializeCache("cpu -toolchain=reference")(mod) is mod


@pytest.mark.parametrize("is_simplified", [False, True])
@pytest.mark.parametrize(("window", "is_fixed"), [(4, False), (32, False), (33, True), (4096, True)])
def test_a_sliding_window_is_left_as_it_is(window: int, is_fixed: bool, is_simplified: bool) -> None:
    """Distances from the past are not right while there is room between it and new tokens."""
    mod = cached_program(replace(GPT2, window=window), (16,), is_simplified=is_simplified)
    assert (cache_of(mod["main"]) is not None) == is_fixed


def test_a_second_run_changes_nothing() -> None:
    mod = cached_program(GPT2, (16,))
    assert CacheInPlace()(mod) is mod


def test_steps_of_one_token_only() -> None:
    mod = decoder(replace(GPT2, layers=1))
    single = BindDims(("sequence_length=1",))(mod)
    cache = cache_of(CacheInPlace((8,), (1, 16))(single)["main"])
    assert cache is not None
    assert cache.chunks == (1,)
    assert ("input_ids", 1) in cache.token_inputs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacities": (8, 4)}, r"capacities are \[8, 4\], expected ascending numbers of tokens"),
        ({"chunks": (0, 4)}, r"chunks are \[0, 4\], expected ascending numbers of tokens"),
        ({"capacities": ()}, "there are no capacities, expected at least one"),
    ],
)
def test_options_are_checked(options: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CacheInPlace(**options)
