"""ConvNeXt-T (Liu et al. 2022, table 9), 224x224."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto

STAGES = ((96, 3), (192, 3), (384, 9), (768, 3))
"""Channels, number of blocks."""
EPSILON = 1e-6
CHANNELS_LAST = (0, 2, 3, 1)
CHANNELS_FIRST = (0, 3, 1, 2)


def build(seed: int) -> ModelProto:
    """image: (1, 3, 224, 224) to logits: (1, 1000); 28.6 million parameters."""
    net = GraphWriter("convnext_tiny")
    x = net.input("image", (1, 3, 224, 224))
    channels = 3
    for stage, (width, blocks) in enumerate(STAGES):
        with net.scope(f"stage{stage}"):
            with net.scope("downsample"):
                x = _downsample(net, x, (channels, width))
            for block in range(blocks):
                with net.scope(f"block{block}"):
                    x = _block(net, x, width)
        channels = width
    with net.scope("classifier"):
        x = net.node("GlobalAveragePool", x, name="pool")
        x = net.node("Flatten", x, name="flatten", axis=1)
        x = net.layer_norm(x, channels, epsilon=EPSILON)
        net.output(net.dense(x, (channels, 1000)), "logits", (1, 1000))
    return net.finish(seed)


def _downsample(net: GraphWriter, x: str, channels: tuple[int, int]) -> str:
    """Patches of 4x4 pixels, normalised, for the image; later patches of 2x2 of the normalised features."""
    if channels[0] == 3:
        return _channel_norm(net, net.conv(x, channels, 4, stride=4, bias=True), channels[1])
    return net.conv(_channel_norm(net, x, channels[0]), channels, 2, stride=2, bias=True)


def _block(net: GraphWriter, x: str, width: int) -> str:
    """A depthwise convolution, then a feed-forward layer on each pixel, scaled and added to the input."""
    y = net.conv(x, (width, width), 7, pad=3, groups=width, bias=True, name="depthwise")
    y = net.transpose(y, CHANNELS_LAST, name="channels_last")
    y = net.layer_norm(y, width, epsilon=EPSILON)
    y = net.linear(y, (width, 4 * width), name="widen")
    y = net.node("Gelu", y, name="gelu", approximate="none")
    y = net.linear(y, (4 * width, width), name="narrow")
    y = net.transpose(y, CHANNELS_FIRST, name="channels_first")
    y = net.node("Mul", y, net.weight("layer_scale", (width, 1, 1)), name="scaled")
    return net.node("Add", y, x, name="add")


def _channel_norm(net: GraphWriter, x: str, width: int) -> str:
    """Layer normalisation of the channels of NCHW."""
    x = net.transpose(x, CHANNELS_LAST, name="channels_last")
    return net.transpose(net.layer_norm(x, width, epsilon=EPSILON), CHANNELS_FIRST, name="channels_first")


MODELS = (
    ZooModel(
        "convnext_tiny",
        Family.CONVOLUTION,
        "ConvNeXt-T: depthwise 7x7 convolutions, layer normalisation, Gelu, layer scale",
        build,
    ),
)
