"""The DCGAN generator (Radford et al. 2016, figure 1) for 64x64 images."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto

LATENT = 100
CHANNELS = (512, 256, 128, 64)  # at 4x4, 8x8, 16x16 and 32x32


def build(seed: int) -> ModelProto:
    """latent: (1, 100, 1, 1) to image: (1, 3, 64, 64) in [-1, 1]; 3.6 million parameters."""
    net = GraphWriter("dcgan")
    x = net.input("latent", (1, LATENT, 1, 1))
    with net.scope("project"):
        x = net.conv_transpose(x, (LATENT, CHANNELS[0]), 4)
        x = net.relu(net.batch_norm(x, CHANNELS[0]))
    for number, channels in enumerate(pairwise(CHANNELS)):
        with net.scope(f"upsample{number}"):
            x = net.conv_transpose(x, channels, 4, stride=2, pad=1)
            x = net.relu(net.batch_norm(x, channels[1]))
    with net.scope("paint"):
        x = net.conv_transpose(x, (CHANNELS[-1], 3), 4, stride=2, pad=1)
        net.output(net.node("Tanh", x, name="tanh"), "image", (1, 3, 64, 64))
    return net.finish(seed)


MODELS = (
    ZooModel("dcgan", Family.GENERATIVE, "DCGAN generator: transposed convolutions to a 64x64 image", build),
)
