"""MobileNetV2 (Sandler et al. 2018, table 2), width 1.0, 224x224."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto

STEM_CHANNELS = 32
HEAD_CHANNELS = 1280
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, output channels, number of blocks, stride of the first block."""


def build(seed: int) -> ModelProto:
    """image: (1, 3, 224, 224) to logits: (1, 1000); 3.5 million parameters."""
    net = GraphWriter("mobilenet_v2")
    x = net.input("image", (1, 3, 224, 224))
    with net.scope("stem"):
        x = _conv_relu6(net, x, (3, STEM_CHANNELS), 3, stride=2)
    channels = STEM_CHANNELS
    for stage, (expansion, out_channels, blocks, first_stride) in enumerate(STAGES):
        for block in range(blocks):
            with net.scope(f"stage{stage}/block{block}"):
                stride = first_stride if block == 0 else 1
                x = _inverted_residual(net, x, (channels, out_channels), expansion, stride)
            channels = out_channels
    with net.scope("head"):
        x = _conv_relu6(net, x, (channels, HEAD_CHANNELS), 1)
    net.classifier(x, HEAD_CHANNELS, 1000)
    return net.finish(seed)


def _inverted_residual(
    net: GraphWriter, x: str, channels: tuple[int, int], expansion: int, stride: int
) -> str:
    """Inverted residual: expand, depthwise convolution, linear projection; plus the input if shapes agree."""
    hidden = channels[0] * expansion
    y = x
    if expansion != 1:
        with net.scope("expand"):
            y = _conv_relu6(net, y, (channels[0], hidden), 1)
    with net.scope("depthwise"):
        y = _conv_relu6(net, y, (hidden, hidden), 3, stride=stride, groups=hidden)
    with net.scope("project"):
        y = net.batch_norm(net.conv(y, (hidden, channels[1]), 1), channels[1])
    return net.node("Add", x, y, name="add") if stride == 1 and channels[0] == channels[1] else y


def _conv_relu6(
    net: GraphWriter, x: str, channels: tuple[int, int], kernel: int, *, stride: int = 1, groups: int = 1
) -> str:
    x = net.conv(x, channels, kernel, stride=stride, pad=kernel // 2, groups=groups)
    return net.clip(net.batch_norm(x, channels[1]), 0.0, 6.0, name="relu6")


MODELS = (
    ZooModel(
        "mobilenet_v2",
        Family.CONVOLUTION,
        "MobileNetV2: depthwise convolutions, linear bottlenecks, Relu6",
        build,
    ),
)
