"""NASNet-A (4 @ 1056) (Zoph et al. 2018, figure 4), 224x224: the mobile size, as Keras has it.

A cell reads the outputs of the two cells before it and joins the sums of five pairs of branches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import ModelProto

STEM_CHANNELS = 32
FILTERS = 44  # of a branch in the first cells; twice as many after each reduction
CELLS = 4  # normal cells between reductions
EPSILON = 1e-3


@dataclass(frozen=True, slots=True)
class Image:
    """A tensor of shape (1, channels, size, size)."""

    name: str
    channels: int
    size: int


def build(seed: int) -> ModelProto:
    """image: (1, 3, 224, 224) to logits: (1, 1000); 5.3 million parameters."""
    net = GraphWriter("nasnet_a")
    with net.scope("stem"):
        x = net.conv(net.input("image", (1, 3, 224, 224)), (3, STEM_CHANNELS), 3, stride=2)
        x = net.batch_norm(x, STEM_CHANNELS, epsilon=EPSILON)
    before = last = Image(x, STEM_CHANNELS, 111)
    for number, filters in enumerate((FILTERS // 4, FILTERS // 2)):
        with net.scope(f"stem/reduction{number}"):
            before, last = last, _reduction_cell(net, last, before, filters)
    for stage in range(3):
        filters = FILTERS * 2**stage
        if stage > 0:
            with net.scope(f"stage{stage}/reduction"):
                before, last = last, _reduction_cell(net, last, before, filters)
        for cell in range(CELLS):
            with net.scope(f"stage{stage}/cell{cell}"):
                before, last = last, _normal_cell(net, last, before, filters)
    net.classifier(net.relu(last.name, name="last.relu"), last.channels, 1000)
    return net.finish(seed)


def _normal_cell(net: GraphWriter, last: Image, before: Image, filters: int) -> Image:
    """A normal cell: five sums of the last two outputs, joined with the earlier one: 6 x filters channels."""
    p = _fitted(net, before, last, filters)
    h = _projected(net, last, filters, "last")
    parts = [
        p.name,
        _sum(net, "sum0", _separable(net, h, filters, 5, "a0"), _separable(net, p, filters, 3, "b0")),
        _sum(net, "sum1", _separable(net, p, filters, 5, "a1"), _separable(net, p, filters, 3, "b1")),
        _sum(net, "sum2", net.average_pool(h.name, 3, pad=1, name="a2"), p.name),
        _sum(
            net,
            "sum3",
            net.average_pool(p.name, 3, pad=1, name="a3"),
            net.average_pool(p.name, 3, pad=1, name="b3"),
        ),
        _sum(net, "sum4", _separable(net, h, filters, 3, "a4"), h.name),
    ]
    return Image(net.node("Concat", *parts, name="joined", axis=1), 6 * filters, last.size)


def _reduction_cell(net: GraphWriter, last: Image, before: Image, filters: int) -> Image:
    """A reduction cell: five sums, four of half the size are joined: 4 x filters channels."""
    p = _fitted(net, before, last, filters)
    h = _projected(net, last, filters, "last")
    size = (last.size + 1) // 2
    padded = _zero_padded(net, h.name, _half_pads(h.size, 3), "last.padded")
    first = _sum(
        net,
        "sum0",
        _separable(net, h, filters, 5, "a0", stride=2),
        _separable(net, p, filters, 7, "b0", stride=2),
    )
    second = _sum(
        net,
        "sum1",
        net.max_pool(padded, 3, stride=2, name="a1"),
        _separable(net, p, filters, 7, "b1", stride=2),
    )
    third = _sum(
        net,
        "sum2",
        net.average_pool(padded, 3, stride=2, name="a2"),
        _separable(net, p, filters, 5, "b2", stride=2),
    )
    fourth = _sum(net, "sum3", second, net.average_pool(first, 3, pad=1, name="b3"))
    fifth = _sum(
        net,
        "sum4",
        _separable(net, Image(first, filters, size), filters, 3, "a4"),
        net.max_pool(padded, 3, stride=2, name="b4"),
    )
    joined = net.node("Concat", second, third, fourth, fifth, name="joined", axis=1)
    return Image(joined, 4 * filters, size)


def _separable(
    net: GraphWriter, image: Image, filters: int, kernel: int, name: str, *, stride: int = 1
) -> str:
    """Twice: Relu, a filter for each channel, a 1x1 convolution, normalisation."""
    x, channels = image.name, image.channels
    pads = (kernel // 2, kernel // 2) if stride == 1 else _half_pads(image.size, kernel)
    with net.scope(name):
        for step in range(2):
            with net.scope(f"step{step}"):
                x = net.relu(x)
                x = net.conv(
                    x,
                    (channels, channels),
                    kernel,
                    stride=stride if step == 0 else 1,
                    pad=pads if step == 0 else kernel // 2,
                    groups=channels,
                    name="depthwise",
                )
                x = net.conv(x, (channels, filters), 1, name="pointwise")
                x = net.batch_norm(x, filters, epsilon=EPSILON)
            channels = filters
    return x


def _fitted(net: GraphWriter, before: Image, last: Image, filters: int) -> Image:
    """Adjust the earlier of two cell outputs to the size of the later one, with `filters` channels."""
    if before.size != last.size:
        return _halved(net, before, filters)
    if before is last or before.channels == filters:
        return before
    return _projected(net, before, filters, "before")


def _projected(net: GraphWriter, image: Image, filters: int, name: str) -> Image:
    with net.scope(name):
        x = net.conv(net.relu(image.name), (image.channels, filters), 1)
        return Image(net.batch_norm(x, filters, epsilon=EPSILON), filters, image.size)


def _halved(net: GraphWriter, image: Image, filters: int) -> Image:
    """Every second pixel by one 1x1 convolution, the pixels diagonally after them by another."""
    with net.scope("before"):
        x = net.relu(image.name)
        shifted = _zero_padded(net, x, (0, 1), "padded")
        ones, ends = np.array([1, 1], np.int64), np.array([image.size + 1] * 2, np.int64)
        axes = net.constant("axes", np.array([2, 3], np.int64))
        shifted = net.node(
            "Slice", shifted, net.constant("starts", ones), net.constant("ends", ends), axes, name="shifted"
        )
        halves = (
            net.conv(
                net.average_pool(pixels, 1, stride=2, name=f"every_second{index}"),
                (image.channels, filters // 2),
                1,
                name=f"conv{index}",
            )
            for index, pixels in enumerate((x, shifted))
        )
        x = net.node("Concat", *halves, name="halves", axis=1)
        return Image(net.batch_norm(x, filters, epsilon=EPSILON), filters, (image.size + 1) // 2)


def _zero_padded(net: GraphWriter, x: str, pads: tuple[int, int], name: str) -> str:
    begin, end = pads
    widths = net.constant(f"{name}.pads", np.array([0, 0, begin, begin, 0, 0, end, end], np.int64))
    return net.node("Pad", x, widths, name=name)


def _half_pads(size: int, kernel: int) -> tuple[int, int]:
    """Zeros before and after an image of which windows with stride 2 are to make half, rounded up."""
    return (kernel // 2 - (size % 2 == 0), kernel // 2)


def _sum(net: GraphWriter, name: str, one: str, other: str) -> str:
    return net.node("Add", one, other, name=name)


MODELS = (
    ZooModel(
        "nasnet_a",
        Family.CONVOLUTION,
        "NASNet-A mobile: cells of separable convolutions and pools, five sums each",
        build,
    ),
)
