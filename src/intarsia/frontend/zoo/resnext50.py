"""ResNeXt-50 32x4d (Xie et al. 2017, table 1), 224x224."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto

GROUPS = 32
STAGES = ((128, 256), (256, 512), (512, 1024), (1024, 2048))
"""Channels of the grouped convolution, output channels."""


def build(seed: int, blocks: Sequence[int] = (3, 4, 6, 3)) -> ModelProto:
    """image: (1, 3, 224, 224) to logits: (1, 1000); 25 million parameters.

    Args:
        seed: Seed of the weights.
        blocks: Number of blocks of each stage; ResNeXt-101 has (3, 4, 23, 3).
    """
    net = GraphWriter("resnext50")
    x = net.input("image", (1, 3, 224, 224))
    with net.scope("stem"):
        x = net.relu(_conv_norm(net, x, (3, 64), 7, stride=2))
        x = net.max_pool(x, 3, stride=2, pad=1)
    channels = 64
    for stage, (width, out_channels) in enumerate(STAGES):
        for block in range(blocks[stage]):
            with net.scope(f"stage{stage}/block{block}"):
                stride = 2 if stage > 0 and block == 0 else 1
                x = _block(net, x, (channels, width, out_channels), stride)
            channels = out_channels
    net.classifier(x, channels, 1000)
    return net.finish(seed)


def _block(net: GraphWriter, x: str, channels: tuple[int, int, int], stride: int) -> str:
    """1x1, grouped 3x3 and 1x1 convolutions, added to the input (projected where its shape differs)."""
    in_channels, width, out_channels = channels
    with net.scope("reduce"):
        y = net.relu(_conv_norm(net, x, (in_channels, width), 1))
    with net.scope("grouped"):
        y = net.relu(_conv_norm(net, y, (width, width), 3, stride=stride, groups=GROUPS))
    with net.scope("expand"):
        y = _conv_norm(net, y, (width, out_channels), 1)
    if in_channels != out_channels:
        with net.scope("shortcut"):
            x = _conv_norm(net, x, (in_channels, out_channels), 1, stride=stride)
    return net.relu(net.node("Add", y, x, name="add"))


def _conv_norm(
    net: GraphWriter, x: str, channels: tuple[int, int], kernel: int, *, stride: int = 1, groups: int = 1
) -> str:
    x = net.conv(x, channels, kernel, stride=stride, pad=kernel // 2, groups=groups)
    return net.batch_norm(x, channels[1])


MODELS = (ZooModel("resnext50", Family.CONVOLUTION, "ResNeXt-50 32x4d: residual blocks of 32 groups", build),)
