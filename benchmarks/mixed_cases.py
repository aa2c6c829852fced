"""Models of which no toolchain is the best, or the only one that can run them, in all parts.

Weights are random, and each model is generated from a seed. A run takes a few milliseconds to tens of
milliseconds on two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from intarsia.frontend.zoo.graph_writer import GraphWriter
from intarsia.frontend.zoo.transformer import (
    Size,
    attention_scores,
    feed_forward,
    split_heads,
    weighted_values,
)

if TYPE_CHECKING:
    from onnx import ModelProto

_CROPS: Final = 8
_TREES: Final = 200
_DEPTH: Final = 6


@dataclass(frozen=True, slots=True)
class MixedCase:
    """A model, and why it invites a mix.

    Attributes:
        reason: Difference between its parts, in words.
        build: Function that makes the model from a seed.
        is_for_devices: Whether its parts are to be placed on two devices instead of toolchains.
    """

    reason: str
    build: Callable[[int], ModelProto]
    is_for_devices: bool = False


def conv_block(net: GraphWriter, x: str, channels: tuple[int, int], name: str, stride: int = 1) -> str:
    """Write a 3x3 convolution, batch normalisation and Relu."""
    with net.scope(name):
        x = net.conv(x, channels, 3, stride=stride, pad=1)
        return net.relu(net.batch_norm(x, channels[1]))


def front(net: GraphWriter, x: str, widths: tuple[int, ...], name: str = "front") -> str:
    """Write convolutions that halve the image each, each followed by one that keeps it."""
    with net.scope(name):
        for number, channels in enumerate(zip((3, *widths), widths, strict=False)):
            x = conv_block(net, x, channels, f"down{number}", stride=2)
            x = conv_block(net, x, (channels[1], channels[1]), f"keep{number}")
    return x


def replace_node(model: ModelProto, name: str, operator: str, *inputs: str, **attributes: Any) -> None:
    """Replace the operator, inputs and attributes of a node; it keeps its outputs.

    The writer draws weights by the shapes of all values, which it cannot infer behind operators of other
    domains and of results whose size is not known. So these stand in for others while weights are drawn.
    """
    from onnx import helper

    (node,) = (node for node in model.graph.node if node.name == name)
    node.CopyFrom(helper.make_node(operator, inputs, list(node.output), name=name, **attributes))


def opaque_operator(seed: int) -> ModelProto:
    """Return convolutions, crops by an operator that only onnxruntime has, and convolutions of the crops."""
    from onnx import helper

    net = GraphWriter("opaque_operator")
    x = front(net, net.input("image", (1, 3, 192, 192)), (32, 64))
    corners = np.sort(np.random.default_rng(seed).uniform(0.0, 1.0, (_CROPS, 2, 2)), axis=1)
    rois = net.constant("rois", corners.reshape(_CROPS, 4).astype(np.float32))
    batch = net.constant("batch", np.zeros(_CROPS, np.int32))
    size = net.constant("size", np.array([14, 14], np.int32))
    y = net.node("Tile", net.average_pool(x, 9, stride=3), _repeats(net), name="crops")
    # onnxruntime infers no size of the crops, and without one the convolutions behind are left to it, too.
    y = net.reshape(y, (_CROPS, 64, 14, 14), name="crops.sized")
    for number in range(4):
        y = conv_block(net, y, (64, 64), f"head{number}")
    net.output(net.node("GlobalAveragePool", y, name="pool"), "features", (_CROPS, 64, 1, 1))
    model = net.finish(seed)
    replace_node(model, "crops", "CropAndResize", x, rois, batch, size, domain="com.microsoft")
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def _repeats(net: GraphWriter) -> str:
    return net.constant("repeats", np.array([_CROPS, 1, 1, 1], np.int64))


def detector(seed: int) -> ModelProto:
    """Return convolutions with a head of boxes and scores, and non-maximum suppression behind them."""
    from onnx import TensorProto, helper

    net, cells = GraphWriter("detector"), 28 * 28
    x = front(net, net.input("image", (1, 3, 224, 224)), (24, 48, 96))
    sizes = net.reshape(net.conv(x, (96, 4), 1, bias=True, name="sizes"), (1, 4, cells), name="sizes.flat")
    boxes = net.transpose(net.node("Sigmoid", sizes, name="boxes"), (0, 2, 1), name="boxes.last")
    heads = net.conv(x, (96, 8), 1, bias=True, name="classes")
    scores = net.node("Sigmoid", net.reshape(heads, (1, 8, cells), name="classes.flat"), name="scores")
    limits = (
        net.constant("most", np.array([20], np.int64)),
        net.constant("overlap", np.array([0.5], np.float32)),
        net.constant("least", np.array([0.6], np.float32)),
    )
    picked = net.node("Identity", net.constant("some", np.zeros((20, 3), np.int64)), name="picked")
    cell = net.node("Gather", picked, net.constant("column", np.array(2, np.int64)), name="cell", axis=1)
    net.output(net.node("Gather", boxes, cell, name="chosen", axis=1), "detections", (1, 20, 4))
    model = net.finish(seed)
    replace_node(model, "picked", "NonMaxSuppression", boxes, scores, *limits)
    found = helper.make_tensor_value_info("detections", TensorProto.FLOAT, (1, "found", 4))
    model.graph.output[0].CopyFrom(found)
    return model


def tree_ensemble(seed: int) -> ModelProto:
    """Return convolutions, and a forest of regression trees on their features."""
    from onnx import helper

    net = GraphWriter("tree_ensemble")
    x = front(net, net.input("image", (4, 3, 128, 128)), (32, 64, 128))
    x = net.node("Flatten", net.node("GlobalAveragePool", x, name="pool"), name="features", axis=1)
    axis = net.constant("axis", np.array([1], np.int64))
    net.output(net.node("ReduceMean", x, axis, name="trees"), "value", (4, 1))
    model = net.finish(seed)
    forest = _forest(np.random.default_rng(seed), 128)
    replace_node(model, "trees", "TreeEnsembleRegressor", x, domain="ai.onnx.ml", **forest)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return model


def _forest(rng: np.random.Generator, features: int) -> dict[str, Any]:
    """Return the attributes of a forest of full trees, the nodes of each numbered as in a heap."""
    inner, count = 2**_DEPTH - 1, 2 ** (_DEPTH + 1) - 1
    nodes = [(tree, node) for tree in range(_TREES) for node in range(count)]
    leaves = [(tree, node) for tree, node in nodes if node >= inner]
    return {
        "n_targets": 1,
        "nodes_treeids": [tree for tree, _ in nodes],
        "nodes_nodeids": [node for _, node in nodes],
        "nodes_featureids": [int(rng.integers(features)) if n < inner else 0 for _, n in nodes],
        "nodes_modes": ["BRANCH_LEQ" if node < inner else "LEAF" for _, node in nodes],
        "nodes_values": [float(rng.normal(0.4, 0.2)) if node < inner else 0.0 for _, node in nodes],
        "nodes_truenodeids": [2 * node + 1 if node < inner else 0 for _, node in nodes],
        "nodes_falsenodeids": [2 * node + 2 if node < inner else 0 for _, node in nodes],
        "target_treeids": [tree for tree, _ in leaves],
        "target_nodeids": [node for _, node in leaves],
        "target_ids": [0] * len(leaves),
        "target_weights": [float(rng.normal()) for _ in leaves],
    }


def quantised_part(seed: int) -> ModelProto:
    """Return convolutions in float32 around four whose inputs and weights are quantised to 8 bits."""
    net = GraphWriter("quantised_part")
    x = front(net, net.input("image", (1, 3, 128, 128)), (32, 64))
    rng = np.random.default_rng(seed)
    for number in range(4):
        with net.scope(f"narrow{number}"):
            x = net.relu(_quantised_conv(net, _quantised(net, x, 0.05, "input"), rng))
    for number in range(2):
        x = conv_block(net, x, (64, 64), f"back{number}")
    net.classifier(x, 64, 10)
    return net.finish(seed)


def _quantised(net: GraphWriter, x: str, scale: float, name: str) -> str:
    pair = (
        net.constant(f"{name}.scale", np.array(scale, np.float32)),
        net.constant(f"{name}.zero", np.array(0, np.uint8)),
    )
    return net.node(
        "DequantizeLinear", net.node("QuantizeLinear", x, *pair, name=f"{name}.q"), *pair, name=f"{name}.dq"
    )


def _quantised_conv(net: GraphWriter, x: str, rng: np.random.Generator) -> str:
    stored = net.constant("weight.q", rng.integers(-127, 128, (64, 64, 3, 3), np.int8))
    pair = (
        net.constant("weight.scale", np.array(0.0008, np.float32)),
        net.constant("weight.zero", np.array(0, np.int8)),
    )
    weight = net.node("DequantizeLinear", stored, *pair, name="weight")
    return net.node("Conv", x, weight, name="conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def two_networks(seed: int) -> ModelProto:
    """Return two networks of many small layers side by side, which share nothing."""
    net = GraphWriter("two_networks")
    for side in ("left", "right"):
        x = net.input(side, (1, 3, 64, 64))
        with net.scope(side):
            x = front(net, x, (16, 32, 64))
            for number in range(8):
                x = conv_block(net, x, (64, 64), f"layer{number}")
        net.output(net.node("GlobalAveragePool", x, name=f"{side}.pool"), f"{side}_features", (1, 64, 1, 1))
    return net.finish(seed)


def conv_and_transformer(seed: int) -> ModelProto:
    """Return a convolutional front, and a transformer encoder on its cells."""
    net, size = GraphWriter("conv_and_transformer"), Size(layers=4, width=192, heads=4, sequence=196)
    x = front(net, net.input("image", (1, 3, 224, 224)), (24, 48, 96, 192))
    x = net.transpose(net.reshape(x, (1, size.width, size.sequence)), (0, 2, 1), name="tokens")
    for number in range(size.layers):
        with net.scope(f"layer{number}"):
            x = _encoder_layer(net, x, size)
    net.output(net.layer_norm(x, size.width, epsilon=1e-6, name="norm"), "states", (1, 196, size.width))
    return net.finish(seed)


def _encoder_layer(net: GraphWriter, x: str, size: Size) -> str:
    normed = net.layer_norm(x, size.width, epsilon=1e-6, name="norm1")
    query, key, value = (
        split_heads(net, net.linear(normed, (size.width, size.width), name=name), size, name)
        for name in ("query", "key", "value")
    )
    context = weighted_values(net, attention_scores(net, query, key, size), value, size)
    x = net.node("Add", x, net.linear(context, (size.width, size.width), name="out"), name="residual1")
    normed = net.layer_norm(x, size.width, epsilon=1e-6, name="norm2")
    return net.node("Add", x, feed_forward(net, normed, size, "none"), name="residual2")


CASES: Final[Mapping[str, MixedCase]] = MappingProxyType(
    {
        "opaque_operator": MixedCase("one toolchain alone has an operator in the middle", opaque_operator),
        "detector": MixedCase("non-maximum suppression behind convolutions", detector),
        "tree_ensemble": MixedCase("a forest behind convolutions", tree_ensemble),
        "quantised_part": MixedCase("8-bit convolutions between float32 ones", quantised_part),
        "two_networks": MixedCase("two networks, for two devices", two_networks, is_for_devices=True),
        "conv_and_transformer": MixedCase("a transformer behind convolutions", conv_and_transformer),
    }
)
