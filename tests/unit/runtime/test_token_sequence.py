"""Sequences of tokens compute what the program with a growing cache computes, and allocate no cache."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decoders import FORMS, GPT2, LLAMA, cached_decoder, draw_tokens, growing_logits

from intarsia import Executable, build, load
from intarsia.ir.parser import parse_module
from intarsia.op.infer import infer_types
from intarsia.runtime.kernel import Array
from intarsia.runtime.token_sequence import TokenSequence
from intarsia.support.errors import InputError, UsageError
from intarsia.toolchain import usable_toolchains

USABLE = sorted({toolchain.name for toolchain in usable_toolchains()} - {"torch"})
CAPACITIES = (8, 12, 24)


@pytest.fixture(scope="module")
def exe() -> Executable:
    return cached_decoder(GPT2, "onnxruntime", CAPACITIES)


def read(sequence: TokenSequence, tokens: Array, parts: Sequence[int]) -> Array:
    """The logits of tokens that are read in parts of these lengths, then one by one."""
    results, start = [], 0
    for count in (*parts, *(1,) * (tokens.shape[1] - sum(parts))):
        results.append(sequence(tokens[:, start : start + count]))
        start += count
    assert len(sequence) == tokens.shape[1]
    return np.concatenate(results, axis=1)


def assert_close(actual: Array | tuple[Array, ...], expected: Array | tuple[Array, ...]) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("toolchain", USABLE)
def test_a_whole_generation_over_all_capacities(toolchain: str, form: str) -> None:
    size = FORMS[form]
    tokens = draw_tokens(size, 24, batch=2)
    with cached_decoder(size, toolchain, CAPACITIES, batch=2) as exe:
        sequence = exe.start_sequence(batch=2)
        assert_close(read(sequence, tokens, [5]), growing_logits(size, tokens))


@given(st.lists(st.integers(1, 9), max_size=4), st.integers(0, 99))
def test_the_parts_in_which_tokens_come_make_no_difference(parts: list[int], seed: int) -> None:
    length = min(sum(parts) + 3, 24)
    while sum(parts) > length:
        parts.pop()
    tokens = draw_tokens(LLAMA, length, seed=seed)
    with cached_decoder(LLAMA, "onnxruntime", CAPACITIES) as exe:
        assert_close(read(exe.start_sequence(), tokens, parts), growing_logits(LLAMA, tokens))


def test_any_number_of_tokens_at_once() -> None:
    tokens = draw_tokens(GPT2, 20)
    with cached_decoder(GPT2, "onnxruntime", CAPACITIES, chunks=()) as exe:
        assert_close(read(exe.start_sequence(), tokens, [7, 11]), growing_logits(GPT2, tokens))


def test_interleaved_sequences_are_independent(exe: Executable) -> None:
    texts = [draw_tokens(GPT2, 20, seed=seed) for seed in range(2)]
    sequences = [exe.start_sequence() for _ in texts]
    for position in range(20):
        for text, sequence in zip(texts, sequences, strict=True):
            logits = sequence(text[:, position : position + 1])
            assert_close(logits, growing_logits(GPT2, text)[:, position : position + 1])


def test_a_reset_sequence_begins_anew(exe: Executable) -> None:
    sequence, other = exe.start_sequence(), draw_tokens(GPT2, 20, seed=1)
    sequence(draw_tokens(GPT2, 20, seed=2))
    sequence.reset()
    assert len(sequence) == 0
    assert_close(read(sequence, other, []), growing_logits(GPT2, other))


def test_a_clone_goes_on_by_itself(exe: Executable) -> None:
    first, second = draw_tokens(GPT2, 20, seed=1), draw_tokens(GPT2, 20, seed=2)
    second[:, :10] = first[:, :10]
    sequence = exe.start_sequence()
    sequence(first[:, :10])
    clone = sequence.clone()
    logits = sequence(first[:, 10:])
    assert_close(clone(second[:, 10:]), growing_logits(GPT2, second)[:, 10:])
    assert_close(logits, growing_logits(GPT2, first)[:, 10:])


def test_masked_tokens_are_not_seen_by_later_ones(exe: Executable) -> None:
    tokens, mask = draw_tokens(GPT2, 14, batch=2), np.ones((2, 14), np.int64)
    mask[1, :3] = 0  # the second text is shorter: it begins behind tokens that do not count
    sequence = exe.start_sequence(batch=2)
    results = [
        sequence(tokens[:, part], attention_mask=mask[:, part])
        for part in (slice(6), slice(6, 7), slice(7, 14))
    ]
    expected = growing_logits(GPT2, tokens, mask)
    assert_close(np.concatenate(results, axis=1)[0], expected[0])
    assert_close(np.concatenate(results, axis=1)[1, 3:], expected[1, 3:])


@pytest.mark.parametrize("toolchain", ["onnxruntime", "native"])
def test_padding_before_a_text_with_grouped_attention_is_not_seen(toolchain: str) -> None:
    """Rotations depend on distances alone, so that a text may begin later. The operator cannot express it."""
    size = FORMS["grouped"]
    tokens, mask = draw_tokens(size, 14, batch=2), np.ones((2, 14), np.int64)
    mask[1, :3] = 0
    with cached_decoder(size, toolchain, (16,), batch=2) as exe:
        sequence = exe.start_sequence(batch=2)
        results = [
            sequence(tokens[:, part], attention_mask=mask[:, part])
            for part in (slice(6), slice(6, 7), slice(7, 14))
        ]
    logits = np.concatenate(results, axis=1)
    assert_close(logits[:1], growing_logits(size, tokens[:1]))
    assert_close(logits[1:, 3:], growing_logits(size, tokens[1:, 3:]))


def test_positions_may_be_given(exe: Executable) -> None:
    tokens = draw_tokens(GPT2, 6)
    one, two = exe.start_sequence(), exe.start_sequence()
    assert_close(one(tokens, position_ids=np.arange(6)[None]), two(tokens))
    shifted = exe.start_sequence()(tokens, position_ids=np.arange(6)[None] + 1)
    assert not np.allclose(shifted, growing_logits(GPT2, tokens))


@pytest.mark.parametrize("toolchain", ["onnxruntime", "native"])
def test_an_artifact_has_the_cache(tmp_path: Path, toolchain: str) -> None:
    path, tokens = tmp_path / "decoder.intarsia", draw_tokens(GPT2, 16)
    with cached_decoder(GPT2, toolchain, CAPACITIES) as exe:
        exe.save(path)
    np.save(tmp_path / "tokens.npy", tokens)
    program = f"""
import numpy as np
import intarsia
sequence = intarsia.load({str(path)!r}).start_sequence()
tokens = np.load({str(tmp_path / "tokens.npy")!r})
logits = [sequence(tokens[:, :9]), *(sequence(tokens[:, n : n + 1]) for n in range(9, 16))]
np.save({str(tmp_path / "logits.npy")!r}, np.concatenate(logits, axis=1))
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert_close(np.load(tmp_path / "logits.npy"), growing_logits(GPT2, tokens))
    with load(path) as again:
        assert again.plan.cache is not None
        assert again.plan.cache.capacities == CAPACITIES


@pytest.mark.parametrize("toolchain", ["onnxruntime", "native"])
def test_steps_allocate_no_cache(toolchain: str) -> None:
    capacity = 4096
    with cached_decoder(GPT2, toolchain, (capacity,), chunks=(1,)) as exe:
        sequence, token = exe.start_sequence(), draw_tokens(GPT2, 1)
        for _ in range(3):
            sequence.step(token)
        before = sequence.step(token)
        tracemalloc.start()
        try:
            for _ in range(20):
                after = sequence.step(token)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert after is before
    one_state = capacity * GPT2.shared_heads * GPT2.head_width * 4
    assert peak < one_state / 32


def test_what_does_not_fit_the_capacity_is_refused(exe: Executable) -> None:
    sequence = exe.start_sequence()
    sequence(draw_tokens(GPT2, 20))
    message = "the sequence has 20 tokens and 5 more are given, but its cache has a capacity of 24"
    with pytest.raises(InputError, match=message):
        sequence(draw_tokens(GPT2, 5))
    assert len(sequence) == 20
    sequence(draw_tokens(GPT2, 4))


def test_other_errors_name_what_is_wrong(exe: Executable) -> None:
    sequence, tokens = exe.start_sequence(), draw_tokens(GPT2, 3)
    with pytest.raises(InputError, match="there are no new tokens, expected 1 or more"):
        sequence(tokens[:, :0])
    with pytest.raises(InputError, match=re.escape("shape (2, 3), expected (1, tokens)")):
        sequence(np.zeros((2, 3), np.int64))
    with pytest.raises(InputError, match='input "attention_mask" is for 2 new tokens, expected 3'):
        sequence(tokens, attention_mask=np.ones((1, 2), np.int64))
    with pytest.raises(InputError, match=r'there is no input "past_key_values.0.key"'):
        sequence(tokens, **{"past_key_values.0.key": np.zeros((1, 4, 8, 8), np.float32)})
    with pytest.raises(UsageError, match="batch is 0, expected 1 or more"):
        exe.start_sequence(batch=0)


def test_a_program_without_a_cache_has_no_sequence() -> None:
    mod = infer_types(parse_module("def @main(%x: Tensor[(2,), float32]) { Relu(%x) }"))
    with build(mod) as exe, pytest.raises(UsageError, match="the program has no cache"):
        exe.start_sequence()


def test_a_closed_executable_starts_none() -> None:
    exe = cached_decoder(GPT2, "reference", CAPACITIES)
    exe.close()
    with pytest.raises(UsageError, match="the executable is closed"):
        exe.start_sequence()
