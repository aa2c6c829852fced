"""A U-Net (Ronneberger et al. 2015, figure 1) with batch normalisation and padded convolutions.

Four levels of 32 to 256 channels and a bottom of 512, as in Buda et al. 2019 (MRI segmentation), 256x256.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto

LEVELS = (32, 64, 128, 256)
BOTTOM = 512
IMAGE = 256


def build(seed: int) -> ModelProto:
    """image: (1, 3, 256, 256) to logits, a score for each pixel: (1, 1, 256, 256); 7.8 million parameters."""
    net = GraphWriter("unet")
    x = net.input("image", (1, 3, IMAGE, IMAGE))
    skips: list[str] = []
    channels = 3
    for level, width in enumerate(LEVELS):
        with net.scope(f"encoder{level}"):
            skips.append(_two_convolutions(net, x, (channels, width)))
            x = net.max_pool(skips[-1], 2, stride=2)
        channels = width
    with net.scope("bottom"):
        x = _two_convolutions(net, x, (channels, BOTTOM))
    channels = BOTTOM
    for level, width in reversed(list(enumerate(LEVELS))):
        with net.scope(f"decoder{level}"):
            x = net.conv_transpose(x, (channels, width), 2, stride=2, bias=True, name="enlarge")
            x = net.node("Concat", x, skips[level], name="skip", axis=1)
            x = _two_convolutions(net, x, (2 * width, width))
        channels = width
    with net.scope("head"):
        net.output(net.conv(x, (channels, 1), 1, bias=True), "logits", (1, 1, IMAGE, IMAGE))
    return net.finish(seed)


def _two_convolutions(net: GraphWriter, x: str, channels: tuple[int, int]) -> str:
    for index, in_channels in enumerate(channels):
        with net.scope(f"block{index}"):
            x = net.conv(x, (in_channels, channels[1]), 3, pad=1)
            x = net.relu(net.batch_norm(x, channels[1]))
    return x


MODELS = (
    ZooModel("unet", Family.CONVOLUTION, "U-Net: encoder and decoder of four levels, joined by skips", build),
)
