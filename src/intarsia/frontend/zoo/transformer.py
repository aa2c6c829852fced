"""Shared parts of the zoo's transformers: attention and the feed-forward layer."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from intarsia.frontend.zoo.graph_writer import GraphWriter


@dataclass(frozen=True, slots=True)
class Size:
    """The dimensions of a transformer's layers; batch is 1."""

    layers: int
    width: int
    heads: int
    sequence: int

    @property
    def head_width(self) -> int:
        """Features of one attention head."""
        return self.width // self.heads

    @property
    def hidden(self) -> int:
        """Features between the two feed-forward layers."""
        return 4 * self.width


@dataclass(frozen=True, slots=True)
class TextSize(Size):
    """The dimensions of a transformer that reads tokens."""

    vocabulary: int
    positions: int


def split_heads(net: GraphWriter, x: str, size: Size, name: str) -> str:
    """(1, sequence, width) to (1, heads, sequence, head width)."""
    x = net.reshape(x, (1, size.sequence, size.heads, size.head_width), name=f"{name}.split")
    return net.transpose(x, (0, 2, 1, 3), name=f"{name}.heads")


def attention_scores(net: GraphWriter, query: str, key: str, size: Size) -> str:
    """Attention scores, query key^T / sqrt(head width): (1, heads, sequence, sequence)."""
    transposed = net.transpose(key, (0, 1, 3, 2), name="key.transposed")
    product = net.node("MatMul", query, transposed, name="scores")
    return net.node("Mul", product, net.scalar(1 / sqrt(size.head_width)), name="scores.scaled")


def weighted_values(net: GraphWriter, scores: str, value: str, size: Size) -> str:
    """The values averaged by softmax of the scores, heads side by side: (1, sequence, width)."""
    weights = net.node("Softmax", scores, name="softmax", axis=-1)
    context = net.node("MatMul", weights, value, name="context")
    context = net.transpose(context, (0, 2, 1, 3), name="context.merged")
    return net.reshape(context, (1, size.sequence, size.width), name="context.flat")


def feed_forward(net: GraphWriter, x: str, size: Size, approximate: Literal["none", "tanh"]) -> str:
    """Two linear layers with a Gelu between them, four times as wide inside."""
    with net.scope("feed_forward"):
        x = net.linear(x, (size.width, size.hidden), name="widen")
        x = net.node("Gelu", x, name="gelu", approximate=approximate)
        return net.linear(x, (size.hidden, size.width), name="narrow")
