"""ViT-B/16 (Dosovitskiy et al. 2021, table 1), 224x224: normalisation before each part of a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.transformer import (
    Size,
    attention_scores,
    feed_forward,
    split_heads,
    weighted_values,
)
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto

IMAGE = 224
PATCH = 16
PATCHES = (IMAGE // PATCH) ** 2
CLASSES = 1000
SIZE = Size(layers=12, width=768, heads=12, sequence=PATCHES + 1)
EPSILON = 1e-6


def build(seed: int) -> ModelProto:
    """image: (1, 3, 224, 224) to logits: (1, 1000); 86.6 million parameters."""
    net = GraphWriter("vit_base")
    x = _embeddings(net, net.input("image", (1, 3, IMAGE, IMAGE)))
    for layer in range(SIZE.layers):
        with net.scope(f"encoder/layer{layer}"):
            x = _layer(net, x)
    with net.scope("classifier"):
        x = net.layer_norm(x, SIZE.width, epsilon=EPSILON)
        first = net.constant("first", np.array(0, np.int64))
        x = net.node("Gather", x, first, name="class_token", axis=1)
        net.output(net.dense(x, (SIZE.width, CLASSES)), "logits", (1, CLASSES))
    return net.finish(seed)


def _embeddings(net: GraphWriter, image: str) -> str:
    """A class token and a token per patch, with position embeddings added: (1, 197, 768)."""
    with net.scope("embeddings"):
        x = net.conv(image, (3, SIZE.width), PATCH, stride=PATCH, bias=True, name="patches")
        x = net.reshape(x, (1, SIZE.width, PATCHES))
        x = net.transpose(x, (0, 2, 1))
        x = net.node("Concat", net.weight("class_token", (1, 1, SIZE.width)), x, name="tokens", axis=1)
        return net.node("Add", x, net.weight("positions", (1, SIZE.sequence, SIZE.width)), name="sum")


def _layer(net: GraphWriter, x: str) -> str:
    y = net.layer_norm(x, SIZE.width, epsilon=EPSILON, name="attention.layer_norm")
    x = net.node("Add", _attention(net, y), x, name="attention.residual")
    y = net.layer_norm(x, SIZE.width, epsilon=EPSILON, name="feed_forward.layer_norm")
    return net.node("Add", feed_forward(net, y, SIZE, approximate="none"), x, name="feed_forward.residual")


def _attention(net: GraphWriter, x: str) -> str:
    """Attention with three separate projections, of all tokens to all tokens."""
    with net.scope("attention"):
        query, key, value = (
            split_heads(net, net.linear(x, (SIZE.width, SIZE.width), name=name), SIZE, name)
            for name in ("query", "key", "value")
        )
        context = weighted_values(net, attention_scores(net, query, key, SIZE), value, SIZE)
        return net.linear(context, (SIZE.width, SIZE.width), name="output")


MODELS = (
    ZooModel(
        "vit_base",
        Family.TRANSFORMER,
        "ViT-B/16: 12 layers of 768 on 196 patches of an image, 87 million parameters",
        build,
    ),
)
