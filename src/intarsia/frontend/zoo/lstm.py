"""A language model of LSTM layers (Zaremba et al. 2014, section 4.1) for Penn Treebank's 10,000 words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto

LAYERS = 2
WIDTH = 512
SEQUENCE = 64
VOCABULARY = 10_000
SEQUENCE_FIRST = (1, 0, 2)


def build(seed: int) -> ModelProto:
    """input_ids: (1, 64) to logits, scores of the next words: (1, 64, 10000); 14.5 million parameters."""
    net = GraphWriter("lstm")
    x = net.embedding(net.integer_input("input_ids", (1, SEQUENCE), range(VOCABULARY)), VOCABULARY, WIDTH)
    x = net.transpose(x, SEQUENCE_FIRST, name="sequence_first")
    for layer in range(LAYERS):
        with net.scope(f"layer{layer}"):
            x = net.lstm(x, (WIDTH, WIDTH))
    x = net.transpose(x, SEQUENCE_FIRST, name="batch_first")
    net.output(net.linear(x, (WIDTH, VOCABULARY), name="decoder"), "logits", (1, SEQUENCE, VOCABULARY))
    return net.finish(seed)


MODELS = (
    ZooModel(
        "lstm",
        Family.RECURRENT,
        "LSTM language model: 2 layers of 512, 64 tokens, 10,000 words",
        build,
    ),
)
