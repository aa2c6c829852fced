"""BERT encoders (Devlin et al. 2019): normalisation after each residual sum, a pooler at the end."""

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

BASE = TextSize(layers=12, width=768, heads=12, sequence=128, vocabulary=30522, positions=512)
TINY = TextSize(layers=2, width=128, heads=2, sequence=32, vocabulary=1000, positions=64)
EPSILON = 1e-12
MASKED = -10000.0  # added to the scores of the positions that the mask excludes


def build(size: TextSize, seed: int) -> ModelProto:
    """A BERT encoder.

    Inputs are input_ids and attention_mask: (1, sequence); outputs are last_hidden_state:
    (1, sequence, width) and pooler_output: (1, width).
    """
    net = GraphWriter("bert")
    ids = net.integer_input("input_ids", (1, size.sequence), range(size.vocabulary))
    mask = net.integer_input("attention_mask", (1, size.sequence), range(1, 2))
    penalty = _mask_penalty(net, mask, size)
    x = _embeddings(net, ids, size)
    for layer in range(size.layers):
        with net.scope(f"encoder/layer{layer}"):
            x = _layer(net, x, penalty, size)
    net.output(x, "last_hidden_state", (1, size.sequence, size.width))
    _pooler(net, "last_hidden_state", size)
    return net.finish(seed)


def _mask_penalty(net: GraphWriter, mask: str, size: Size) -> str:
    """0 where the mask is 1, a large negative number where it is 0: (1, 1, 1, sequence)."""
    from onnx import TensorProto

    with net.scope("mask"):
        keep = net.node("Cast", mask, name="keep", to=TensorProto.FLOAT)
        drop = net.node("Sub", net.scalar(1.0), keep, name="drop")
        penalty = net.node("Mul", drop, net.scalar(MASKED), name="penalty")
        return net.reshape(penalty, (1, 1, 1, size.sequence))


def _embeddings(net: GraphWriter, ids: str, size: TextSize) -> str:
    with net.scope("embeddings"):
        positions = net.constant("position_ids", np.arange(size.sequence, dtype=np.int64)[None])
        types = net.constant("token_type_ids", np.zeros((1, size.sequence), np.int64))
        words = net.embedding(ids, size.vocabulary, size.width, name="words")
        places = net.embedding(positions, size.positions, size.width, name="positions")
        kinds = net.embedding(types, 2, size.width, name="token_types")
        x = net.node("Add", words, kinds, name="words_and_types")
        x = net.node("Add", x, places, name="sum")
        return net.layer_norm(x, size.width, epsilon=EPSILON)


def _layer(net: GraphWriter, x: str, penalty: str, size: Size) -> str:
    attended = net.node("Add", _attention(net, x, penalty, size), x, name="attention.residual")
    x = net.layer_norm(attended, size.width, epsilon=EPSILON, name="attention.layer_norm")
    fed = net.node("Add", feed_forward(net, x, size, approximate="none"), x, name="feed_forward.residual")
    return net.layer_norm(fed, size.width, epsilon=EPSILON, name="feed_forward.layer_norm")


def _attention(net: GraphWriter, x: str, penalty: str, size: Size) -> str:
    """Attention with three separate projections, of all tokens to all tokens that the mask keeps."""
    with net.scope("attention"):
        query, key, value = (
            split_heads(net, net.linear(x, (size.width, size.width), name=name), size, name)
            for name in ("query", "key", "value")
        )
        scores = net.node("Add", attention_scores(net, query, key, size), penalty, name="scores.masked")
        context = weighted_values(net, scores, value, size)
        return net.linear(context, (size.width, size.width), name="output")


def _pooler(net: GraphWriter, x: str, size: Size) -> None:
    """A dense layer and tanh on the first token."""
    with net.scope("pooler"):
        first = net.node(
            "Gather", x, net.constant("first", np.array(0, np.int64)), name="first_token", axis=1
        )
        x = net.dense(first, (size.width, size.width))
        net.output(net.node("Tanh", x, name="tanh"), "pooler_output", (1, size.width))


MODELS = (
    ZooModel(
        "bert_base",
        Family.TRANSFORMER,
        "BERT-base encoder: 12 layers of 768, 128 tokens, 109 million parameters",
        partial(build, BASE),
    ),
    ZooModel(
        "bert_tiny",
        Family.TRANSFORMER,
        "BERT encoder of 2 layers of 128, 32 tokens, for tests",
        partial(build, TINY),
    ),
)
