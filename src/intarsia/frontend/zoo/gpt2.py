"""GPT-2 decoders (Radford et al. 2019): normalisation first, causal attention, tied output layer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.transformer import (
    Size,
    TextSize,
    attention_scores,
    feed_forward,
    split_heads,
    weighted_values,
)
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto

SMALL = TextSize(layers=12, width=768, heads=12, sequence=64, vocabulary=50257, positions=1024)
TINY = TextSize(layers=2, width=128, heads=2, sequence=32, vocabulary=1000, positions=64)
EPSILON = 1e-5
MASKED = -10000.0  # the score of a token that lies in the future


def build(size: TextSize, seed: int) -> ModelProto:
    """A GPT-2 decoder, input_ids: (1, sequence) to logits: (1, sequence, vocabulary)."""
    net = GraphWriter("gpt2")
    ids = net.integer_input("input_ids", (1, size.sequence), range(size.vocabulary))
    causal = net.constant("causal_mask", np.tri(size.sequence, dtype=np.bool_)[None, None])
    x = _embeddings(net, ids, size)
    for layer in range(size.layers):
        with net.scope(f"layer{layer}"):
            x = _layer(net, x, causal, size)
    x = net.layer_norm(x, size.width, epsilon=EPSILON, name="final.layer_norm")
    _output_layer(net, x, size)
    return net.finish(seed)


def _embeddings(net: GraphWriter, ids: str, size: TextSize) -> str:
    with net.scope("embeddings"):
        positions = net.constant("position_ids", np.arange(size.sequence, dtype=np.int64)[None])
        words = net.embedding(ids, size.vocabulary, size.width, name="words")
        places = net.embedding(positions, size.positions, size.width, name="positions")
        return net.node("Add", words, places, name="sum")


def _layer(net: GraphWriter, x: str, causal: str, size: Size) -> str:
    normed = net.layer_norm(x, size.width, epsilon=EPSILON, name="attention.layer_norm")
    x = net.node("Add", _attention(net, normed, causal, size), x, name="attention.residual")
    normed = net.layer_norm(x, size.width, epsilon=EPSILON, name="feed_forward.layer_norm")
    return net.node(
        "Add", feed_forward(net, normed, size, approximate="tanh"), x, name="feed_forward.residual"
    )


def _attention(net: GraphWriter, x: str, causal: str, size: Size) -> str:
    """Attention with one projection for query, key and value, of each token to those not after it."""
    with net.scope("attention"):
        joint = net.linear(x, (size.width, 3 * size.width), name="query_key_value")
        parts = (".query", ".key", ".value")
        split = net.nodes("Split", joint, name="split", outputs=parts, axis=-1, num_outputs=3)
        query, key, value = (
            split_heads(net, part, size, name.removeprefix("."))
            for part, name in zip(split, parts, strict=True)
        )
        scores = attention_scores(net, query, key, size)
        scores = net.node("Where", causal, scores, net.scalar(MASKED), name="scores.masked")
        context = weighted_values(net, scores, value, size)
        return net.linear(context, (size.width, size.width), name="output")


def _output_layer(net: GraphWriter, x: str, size: TextSize) -> None:
    """Scores of all words, by the transposed table of the word embeddings: one weight with two users."""
    with net.scope("output"):
        rows = net.reshape(x, (size.sequence, size.width), name="rows")
        scores = net.node("Gemm", rows, "embeddings/words.weight", name="scores", transB=1)
        shape = (1, size.sequence, size.vocabulary)
        net.output(net.reshape(scores, shape), "logits", shape)


MODELS = (
    ZooModel(
        "gpt2",
        Family.TRANSFORMER,
        "GPT-2 small decoder: 12 layers of 768, 64 tokens, 124 million parameters",
        partial(build, SMALL),
    ),
    ZooModel(
        "gpt2_tiny",
        Family.TRANSFORMER,
        "GPT-2 decoder of 2 layers of 128, 32 tokens, for tests",
        partial(build, TINY),
    ),
)
