"""Sizes and forms of decoders of language models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final


class Family(Enum):
    """The form of a decoder's layers."""

    GPT2 = "gpt2"
    LLAMA = "llama"


class Positions(Enum):
    """The origin of the positions of new tokens."""

    INPUT = "input"
    MASK = "mask"
    PAST_LENGTH = "past length"


class Attention(Enum):
    """The form of attention: products and a softmax, or one operator, before or after joining.

    The grouped one is what the model builder of onnxruntime-genai writes.
    """

    PARTS = "parts"
    OF_PAST = "operator with the past"
    OF_JOINED = "operator after joining"
    GROUPED = "operator of onnxruntime with the past"


@dataclass(frozen=True, slots=True)
class DecoderSize:
    """The sizes and form of a decoder.

    Attributes:
        family: Form of the layers.
        layers: Number of layers.
        width: Features of a token.
        heads: Heads of the queries.
        shared_heads: Heads of keys and values, a divisor of `heads`; each serves a group of query heads.
        hidden: Features inside the feed-forward layer.
        vocabulary: Number of tokens.
        longest: Largest number of positions; the rows of GPT-2's table.
        has_mask: Whether there is an input `attention_mask`.
        positions: Origin of the positions of new tokens.
        attention: Form of the attention.
        window: Number of tokens that a token sees, itself included; all earlier ones if 0.
    """

    family: Family
    layers: int
    width: int
    heads: int
    shared_heads: int
    hidden: int
    vocabulary: int
    longest: int = 1024
    has_mask: bool = True
    positions: Positions = Positions.INPUT
    attention: Attention = Attention.PARTS
    window: int = 0

    @property
    def head_width(self) -> int:
        """Features of one head."""
        return self.width // self.heads


GPT2_SMALL: Final = DecoderSize(Family.GPT2, 12, 768, 12, 12, 3072, 50257)
LLAMA_1B: Final = DecoderSize(Family.LLAMA, 16, 2048, 32, 8, 8192, 128256)
"""The shapes of Llama 3.2 with 1.2 billion parameters."""
SMOLLM: Final = DecoderSize(Family.LLAMA, 30, 576, 9, 3, 1536, 49152)
"""The shapes of SmolLM2 with 135 million parameters."""
SMOLLM_GROUPED: Final = replace(SMOLLM, attention=Attention.GROUPED, positions=Positions.PAST_LENGTH)
"""The same as onnxruntime-genai's model builder writes it."""
GPT2_TINY: Final = DecoderSize(Family.GPT2, 2, 64, 4, 4, 128, 97, 256)
LLAMA_TINY: Final = DecoderSize(Family.LLAMA, 2, 64, 4, 2, 128, 97, 256)
SIZES: Final = {
    "gpt2": GPT2_SMALL,
    "llama": LLAMA_1B,
    "smollm": SMOLLM,
    "smollm_grouped": SMOLLM_GROUPED,
    "gpt2_tiny": GPT2_TINY,
    "llama_tiny": LLAMA_TINY,
}
