"""The MNIST convnet of the Collage RFC, section "Example": two padded 5x5 convolutions and a dense layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto


def build(seed: int) -> ModelProto:
    """x: (1, 1, 28, 28) to logits: (1, 10), operator by operator as in the RFC: pads and biases apart."""
    net = GraphWriter("mnist")
    x = net.input("x", (1, 1, 28, 28))
    with net.scope("block1"):
        x = net.max_pool(_padded_conv(net, x, (1, 8)), 2, stride=2)
    with net.scope("block2"):
        x = net.max_pool(_padded_conv(net, x, (8, 16)), 3, stride=3)
    x = net.reshape(x, (1, 256))
    x = net.node("Gemm", x, net.weight("dense.weight", (10, 256)), name="dense", transB=1)
    net.output(net.node("Add", x, net.weight("dense.bias", (1, 10)), name="add"), "logits", (1, 10))
    return net.finish(seed)


def _padded_conv(net: GraphWriter, x: str, channels: tuple[int, int]) -> str:
    """Pad by 2, 5x5 convolution without padding, bias as an Add of (channels, 1, 1), Relu."""
    pads = net.constant("pad.widths", np.array([0, 0, 2, 2, 0, 0, 2, 2], np.int64))
    x = net.node("Pad", x, pads, net.scalar(0.0), name="pad", mode="constant")
    x = net.conv(x, channels, 5)
    x = net.node("Add", x, net.weight("conv.bias", (channels[1], 1, 1)), name="add")
    return net.relu(x)


MODELS = (
    ZooModel("mnist", Family.CONVOLUTION, "The small MNIST convnet of the Collage RFC: 12 operators", build),
)
