"""EfficientNet-B0 (Tan and Le 2019, table 1), 224x224."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto

STEM_CHANNELS = 32
HEAD_CHANNELS = 1280
SQUEEZE = 4  # a block's input has that many times the channels between its two gate layers


@dataclass(frozen=True, slots=True)
class BlockStage:
    """Blocks that share a kernel size and a number of output channels; only the first one has the stride."""

    expansion: int
    kernel: int
    stride: int
    channels: int
    blocks: int


STAGES = (
    BlockStage(expansion=1, kernel=3, stride=1, channels=16, blocks=1),
    BlockStage(expansion=6, kernel=3, stride=2, channels=24, blocks=2),
    BlockStage(expansion=6, kernel=5, stride=2, channels=40, blocks=2),
    BlockStage(expansion=6, kernel=3, stride=2, channels=80, blocks=3),
    BlockStage(expansion=6, kernel=5, stride=1, channels=112, blocks=3),
    BlockStage(expansion=6, kernel=5, stride=2, channels=192, blocks=4),
    BlockStage(expansion=6, kernel=3, stride=1, channels=320, blocks=1),
)


def build(seed: int) -> ModelProto:
    """image: (1, 3, 224, 224) to logits: (1, 1000); 5.3 million parameters."""
    net = GraphWriter("efficientnet_b0")
    x = net.input("image", (1, 3, 224, 224))
    with net.scope("stem"):
        x = _conv_swish(net, x, (3, STEM_CHANNELS), 3, stride=2)
    channels = STEM_CHANNELS
    for number, stage in enumerate(STAGES):
        for block in range(stage.blocks):
            with net.scope(f"stage{number}/block{block}"):
                x = _block(net, x, channels, stage, stage.stride if block == 0 else 1)
            channels = stage.channels
    with net.scope("head"):
        x = _conv_swish(net, x, (channels, HEAD_CHANNELS), 1)
    net.classifier(x, HEAD_CHANNELS, 1000)
    return net.finish(seed)


def _block(net: GraphWriter, x: str, channels: int, stage: BlockStage, stride: int) -> str:
    """MBConv: expand, depthwise convolution, channel gate, project; add the input where shapes agree."""
    hidden = channels * stage.expansion
    y = x
    if stage.expansion != 1:
        with net.scope("expand"):
            y = _conv_swish(net, y, (channels, hidden), 1)
    with net.scope("depthwise"):
        y = _conv_swish(net, y, (hidden, hidden), stage.kernel, stride=stride, groups=hidden)
    with net.scope("gate"):
        y = _gated(net, y, hidden, channels // SQUEEZE)
    with net.scope("project"):
        y = net.batch_norm(net.conv(y, (hidden, stage.channels), 1), stage.channels)
    return net.node("Add", x, y, name="add") if stride == 1 and channels == stage.channels else y


def _gated(net: GraphWriter, x: str, channels: int, squeezed: int) -> str:
    """Squeeze and excitation (Hu et al. 2018): each channel times a gate of all channel averages."""
    y = net.node("GlobalAveragePool", x, name="pool")
    y = net.swish(net.conv(y, (channels, squeezed), 1, bias=True, name="squeeze"))
    y = net.conv(y, (squeezed, channels), 1, bias=True, name="excite")
    return net.node("Mul", x, net.node("Sigmoid", y, name="sigmoid"), name="scaled")


def _conv_swish(
    net: GraphWriter, x: str, channels: tuple[int, int], kernel: int, *, stride: int = 1, groups: int = 1
) -> str:
    x = net.conv(x, channels, kernel, stride=stride, pad=kernel // 2, groups=groups)
    return net.swish(net.batch_norm(x, channels[1]))


MODELS = (
    ZooModel(
        "efficientnet_b0",
        Family.CONVOLUTION,
        "EfficientNet-B0: depthwise convolutions, squeeze and excitation, Swish",
        build,
    ),
)
