"""The nine light models inside the `onnx` package, with weights.

The package has these networks with (most of) their weights replaced by constants, so that they take no space.
Here each weight becomes an initializer again, with random values. Operator set (9), IR version (3: weights
are listed as inputs too), names and node order are the models' own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from intarsia.frontend.zoo.weights import draw_weights
from intarsia.frontend.zoo.zoo_model import Family, ZooModel

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

DESCRIPTIONS = (
    ("alexnet", "bvlc_alexnet", "AlexNet: grouped convolutions, LRN, two layers of 4096"),
    ("densenet121", "densenet121", "DenseNet-121: 1,746 nodes as published, many concatenations"),
    ("inception_v1", "inception_v1", "GoogLeNet: four parallel branches a block, LRN"),
    ("inception_v2", "inception_v2", "Inception v2: parallel branches with batch normalisation"),
    ("resnet50", "resnet50", "ResNet-50: bottleneck blocks with residual sums"),
    ("shufflenet", "shufflenet", "ShuffleNet: grouped convolutions and channel shuffles"),
    ("squeezenet", "squeezenet", "SqueezeNet 1.0: fire modules, 1.2 million parameters"),
    ("vgg19", "vgg19", "VGG-19: sixteen 3x3 convolutions, 144 million parameters"),
    ("zfnet512", "zfnet512", "ZFNet-512: AlexNet with smaller strides and more channels"),
)


def build(file: str, seed: int) -> ModelProto:
    """The light model `light_<file>.onnx` with random weights."""
    model = _light_model(file)
    _declare_weights(model.graph)
    draw_weights(model, seed)
    return model


def _light_model(file: str) -> ModelProto:
    from importlib.resources import files

    import onnx

    path = files("onnx").joinpath("backend", "test", "data", "light", f"light_{file}.onnx")
    return onnx.load_model_from_string(path.read_bytes())


def _declare_weights(graph: GraphProto) -> None:
    """Replace each ConstantOfShape and each float constant in use by an initializer without data.

    Before: w = ConstantOfShape(w__SHAPE), with w__SHAPE = [64, 3, 7, 7]
    After:  w: float32[64, 3, 7, 7], an initializer and, as IR version 3 requires, also an input
    """
    from onnx import TensorProto, helper, numpy_helper

    constants = {tensor.name: tensor for tensor in graph.initializer}
    used = {name for node in graph.node for name in node.input}
    fills = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    shapes = {node.output[0]: numpy_helper.to_array(constants[node.input[0]]).tolist() for node in fills}
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.name in used:
            tensor.ClearField("raw_data")
    for name, shape in shapes.items():
        graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=shape)
        graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    for node in fills:
        graph.node.remove(node)
    _drop_shapes(graph, {node.input[0] for node in fills})


def _drop_shapes(graph: GraphProto, names: set[str]) -> None:
    for values in (graph.initializer, graph.input):
        for value in [value for value in values if value.name in names]:
            values.remove(value)


MODELS = tuple(
    ZooModel(name, Family.CONVOLUTION, description, partial(build, file))
    for name, file, description in DESCRIPTIONS
)
