"""Small decoders, and what they compute with a cache that grows."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
from examples.decoder_model import write_decoder
from examples.decoder_size import GPT2_TINY, LLAMA_TINY, Attention, DecoderSize, Family, Positions

from intarsia import Executable, build, from_onnx
from intarsia.ir import IRModule
from intarsia.passes import CacheInPlace, InferType, SpecializeCache, default_heuristic
from intarsia.runtime.kernel import Array

GPT2: Final = replace(GPT2_TINY, width=32, hidden=64)
LLAMA: Final = replace(LLAMA_TINY, width=32, hidden=64)
FORMS: Final = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "positions of the mask": replace(GPT2, positions=Positions.MASK),
    "positions of the past": replace(GPT2, positions=Positions.PAST_LENGTH),
    "no mask": replace(GPT2, positions=Positions.PAST_LENGTH, has_mask=False),
    "fused": replace(GPT2, attention=Attention.OF_PAST),
    "fused groups": replace(LLAMA, attention=Attention.OF_PAST),
    "fused after joining": replace(LLAMA, attention=Attention.OF_JOINED),
    "grouped": replace(LLAMA, attention=Attention.GROUPED, positions=Positions.PAST_LENGTH),
    "grouped without mask": replace(
        LLAMA, attention=Attention.GROUPED, positions=Positions.PAST_LENGTH, has_mask=False
    ),
    "wide window": replace(GPT2, window=4096),
    "rotated without mask": replace(LLAMA, positions=Positions.PAST_LENGTH, has_mask=False),
}
"""Decoders of every form of mask and positions."""


@cache
def decoder(size: DecoderSize) -> IRModule:
    """The program of a decoder, with a cache that grows."""
    return InferType()(from_onnx(write_decoder(size)))


def cached_program(
    size: DecoderSize,
    capacities: tuple[int, ...],
    chunks: tuple[int, ...] = (1, 4),
    is_simplified: bool = False,
) -> IRModule:
    """The program of a decoder, with a cache of fixed capacity."""
    mod = decoder(size)
    return CacheInPlace(capacities, chunks)(default_heuristic()(mod) if is_simplified else mod)


def cached_decoder(
    size: DecoderSize,
    toolchain: str,
    capacities: tuple[int, ...],
    chunks: tuple[int, ...] = (1, 4),
    batch: int = 1,
) -> Executable:
    """An executable of it; variants for all steps, where a toolchain needs fixed sizes."""
    mod = cached_program(size, capacities, chunks)
    if toolchain != "native":
        return build(mod, toolchain)
    return build(SpecializeCache("cpu -toolchain=native", (f"batch_size={batch}",))(mod))


@cache
def _growing_executable(size: DecoderSize) -> Executable:
    return build(decoder(size), "onnxruntime")


def growing_logits(size: DecoderSize, tokens: Array, mask: Array | None = None) -> Array:
    """The logits of a decoder that reads one token after the other with a cache that grows.

    Args:
        size: The decoder.
        tokens: Tokens (batch, length).
        mask: The tokens that are visible (batch, length); all if not given.
    """
    exe, batch = _growing_executable(size), len(tokens)
    visible = np.ones_like(tokens) if mask is None else mask
    positions = np.maximum(np.cumsum(visible, axis=1) - 1, 0)
    names = [info.name for info in exe.inputs]
    states = [name for name in names if name.startswith("past")]
    empty = np.zeros((batch, size.shared_heads, 0, size.head_width), np.float32)
    past = dict.fromkeys(states, empty)
    logits = []
    for end in range(1, tokens.shape[1] + 1):
        new = slice(end - 1, end)
        rows = {
            "input_ids": tokens[:, new],
            "attention_mask": visible[:, :end],
            "position_ids": positions[:, new],
        }
        given = rows | past
        result, *present = exe({name: given[name] for name in names})
        logits.append(result)
        past = dict(zip(states, present, strict=True))
    return np.concatenate(logits, axis=1)


def draw_tokens(size: DecoderSize, length: int, batch: int = 1, seed: int = 0) -> Array:
    """Tokens (batch, length)."""
    return np.random.default_rng(seed).integers(0, size.vocabulary, (batch, length))


__all__ = [
    "FORMS",
    "GPT2",
    "LLAMA",
    "Attention",
    "DecoderSize",
    "Family",
    "Positions",
    "cached_decoder",
    "cached_program",
    "decoder",
    "draw_tokens",
    "growing_logits",
]
