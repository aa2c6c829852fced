"""Structure of files: control flow, sequences, texts, functions, external weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from corpus.draw import Draw
from corpus.inputs import image
from corpus.recipe import BuiltModel, recipe
from corpus.recipes.narrow_types import small_cnn

FLOW, FILES = "control flow", "files and functions"


def _scripted(draw: Draw, module: Any, inputs: dict[str, Any], opset: int) -> BuiltModel:
    import torch

    from corpus.exporting import export, randomize

    randomize(module, draw.seed)
    return export(draw, torch.jit.script(module.eval()), inputs, ["result"], opset=opset, script=True)


@recipe(FLOW, "torch script", "If")
def early_exit(draw: Draw) -> BuiltModel:
    from corpus.networks.scripted import EarlyExit

    return _scripted(draw, EarlyExit(draw.choose("width", 24, 40)), {"x": draw.normal(1, 16)}, 15)


@recipe(FLOW, "torch script", "Loop")
def greedy_decoder(draw: Draw) -> BuiltModel:
    from corpus.networks.scripted import GreedyDecoder

    width = draw.choose("width", 16, 24)
    inputs = {"state": draw.normal(2, width), "token": np.array([1, 4])}
    return _scripted(draw, GreedyDecoder(width, draw.choose("steps", 5, 3)), inputs, 16)


@recipe(FLOW, "torch script", "sequences", "Loop")
def pieces(draw: Draw) -> BuiltModel:
    from corpus.networks.scripted import Pieces

    width = draw.choose("width", 8, 12)
    return _scripted(draw, Pieces(width), {"x": draw.normal(2, 6, width)}, 13)


@recipe(FLOW, "onnx.helper", "Scan")
def scan(draw: Draw) -> BuiltModel:
    from onnx import TensorProto, helper, numpy_helper

    width = draw.choose("width", 6, 10)
    info = helper.make_tensor_value_info
    weight = numpy_helper.from_array(draw.normal(width, width) * 0.3, "weight")
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["state", "weight"], ["product"]),
            helper.make_node("Add", ["product", "x"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["next"]),
            helper.make_node("Identity", ["next"], ["y"]),
        ],
        "step",
        [info("state", TensorProto.FLOAT, [2, width]), info("x", TensorProto.FLOAT, [2, width])],
        [info("next", TensorProto.FLOAT, [2, width]), info("y", TensorProto.FLOAT, [2, width])],
    )
    node = helper.make_node(
        "Scan",
        ["initial", "xs"],
        ["last", "ys"],
        body=body,
        num_scan_inputs=1,
        scan_output_directions=[draw.choose("reversed", 0, 1)],
    )
    graph = helper.make_graph(
        [node],
        "scan",
        [info("initial", TensorProto.FLOAT, [2, width]), info("xs", TensorProto.FLOAT, [5, 2, width])],
        [info("last", TensorProto.FLOAT, [2, width]), info("ys", TensorProto.FLOAT, [5, 2, width])],
        [weight],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    return BuiltModel(proto, {"initial": draw.normal(2, width), "xs": draw.normal(5, 2, width)})


@recipe(FILES, "onnx.helper", "strings", "labels")
def string_normaliser(draw: Draw) -> BuiltModel:
    from onnx import TensorProto, helper

    info = helper.make_tensor_value_info
    words = ["cat", "dog", "house"]
    nodes = [
        helper.make_node(
            "StringNormalizer",
            ["words"],
            ["lower"],
            case_change_action="LOWER",
            locale="C",
            is_case_sensitive=0,
        ),
        helper.make_node(
            "LabelEncoder",
            ["lower"],
            ["ids"],
            domain="ai.onnx.ml",
            keys_strings=words,
            values_int64s=[0, 1, 2],
            default_int64=3,
        ),
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("ReduceMean", ["rows", "axes"], ["mean"], keepdims=0),
    ]
    from onnx import numpy_helper

    weights = [
        numpy_helper.from_array(draw.normal(4, 6), "table"),
        numpy_helper.from_array(np.array([0]), "axes"),
    ]
    graph = helper.make_graph(
        nodes,
        "words",
        [info("words", TensorProto.STRING, [5])],
        [info("mean", TensorProto.FLOAT, [6])],
        weights,
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    proto = helper.make_model(graph, opset_imports=imports, ir_version=9)
    return BuiltModel(proto, {"words": np.array(["Cat", "dog", "tree", "HOUSE", "cat"], object)})


@recipe(FILES, "onnx.helper", "local functions", "attributes of functions")
def local_functions(draw: Draw) -> BuiltModel:
    from onnx import TensorProto, helper, numpy_helper

    width, info = draw.choose("width", 12, 20), helper.make_tensor_value_info
    opset = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    leaky = helper.make_node("LeakyRelu", ["sum"], ["y"])
    leaky.attribute.append(helper.make_attribute("alpha", 0.0))
    leaky.attribute[0].ref_attr_name, leaky.attribute[0].type = "slope", 1
    leaky.attribute[0].ClearField("f")
    dense = helper.make_function(
        "local",
        "Dense",
        ["x", "w", "b"],
        ["y"],
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["sum"]), leaky],
        opset,
        ["slope"],
    )
    block = helper.make_function(
        "local",
        "Block",
        ["x", "w", "b"],
        ["z"],
        [
            helper.make_node("Dense", ["x", "w", "b"], ["inner"], domain="local", slope=0.2),
            helper.make_node("Add", ["x", "inner"], ["z"]),
        ],
        opset,
    )
    names, nodes, weights = ["x"], [], []
    for number in range(draw.choose("blocks", 2, 3)):
        weights += [
            numpy_helper.from_array(draw.normal(width, width) * 0.2, f"w{number}"),
            numpy_helper.from_array(draw.normal(width), f"b{number}"),
        ]
        nodes.append(
            helper.make_node("Block", [names[-1], f"w{number}", f"b{number}"], [f"x{number}"], domain="local")
        )
        names.append(f"x{number}")
    graph = helper.make_graph(
        nodes,
        "blocks",
        [info("x", TensorProto.FLOAT, ["batch", width])],
        [info(names[-1], TensorProto.FLOAT, ["batch", width])],
        weights,
    )
    proto = helper.make_model(graph, opset_imports=opset, functions=[dense, block], ir_version=9)
    return BuiltModel(proto, {"x": draw.normal(4, width)})


@recipe(FILES, "torch script", "external data")
def external_data(draw: Draw) -> BuiltModel:
    built = small_cnn(draw, 13)
    return BuiltModel(built.proto, built.inputs, "external")


@recipe(FILES, "torch script", "external data saved as one file")
def one_file(draw: Draw) -> BuiltModel:
    built = small_cnn(draw, 14)
    return BuiltModel(built.proto, built.inputs, "from external")


@recipe(FILES, "torch dynamo", "dynamic axes", "computed shapes")
def dynamic_shapes(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.vision import DeepLab

    model = DeepLab(draw.choose("width", 8, 12), (1, 2))
    axes = {"image": {0: "batch", 2: "rows", 3: "columns"}}
    return export(draw, model, {"image": image(draw, 2, 3, 48, 64)}, ["classes"], opset=18, dynamic=axes)
