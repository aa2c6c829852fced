"""ZipMap: replaced by its input, since the language has no maps.

Before:
    label, scores = ai.onnx.ml.TreeEnsembleClassifier(x)
    output = ai.onnx.ml.ZipMap<classlabels_int64s = [0, 1]>(scores)     a sequence of maps {0: ..., 1: ...}

After:
    output = Identity(scores)                                           a tensor of shape (rows, 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from intarsia.frontend.onnx.graph_walk import graphs_of, label, nodes_of
from intarsia.op.opset import ML_DOMAIN, PINNED_OPSET
from intarsia.support.errors import UnsupportedModelError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

WITHOUT_MAPS: Final = (
    "convert the model without maps: options={'zipmap': False} of skl2onnx, or zipmap=False of onnxmltools"
)
"""Advice for a model with values of map type."""

_MOST_CLASSES: Final = 8
"""Number of classes that a note lists by name."""


def replace_zip_maps(model: ModelProto) -> tuple[str, ...]:
    """Replace each ZipMap by the tensor before it, under the name of its maps.

    Args:
        model: Changed in place.

    Returns:
        A note about each output with a changed type.

    Raises:
        UnsupportedModelError: Another operator reads the maps.
    """
    zips = [node for node in nodes_of(model.graph) if _is_zip_map(node)]
    if not zips:
        return ()
    _check_readers(model.graph, {node.output[0] for node in zips})
    notes = tuple(_note(node) for node in zips)
    replaced = {node.output[0] for node in zips}
    for node in zips:
        node.op_type, node.domain = "Identity", ""
        del node.attribute[:]
    for graph in graphs_of(model.graph):
        for output in (*graph.output, *graph.value_info):
            if output.name in replaced:
                output.ClearField("type")  # inference finds the type of the tensor
    if not any(not item.domain for item in model.opset_import):
        model.opset_import.add(domain="", version=PINNED_OPSET)
    return notes


def _is_zip_map(node: NodeProto) -> bool:
    is_whole = len(node.input) == 1 and len(node.output) == 1
    return node.domain == ML_DOMAIN and node.op_type == "ZipMap" and is_whole


def _check_readers(graph: GraphProto, maps: set[str]) -> None:
    for node in nodes_of(graph):
        if maps & set(node.input):
            raise UnsupportedModelError(
                f"node {label(node)!r} ({node.op_type}) reads the maps of a ZipMap; values of map type are "
                "not supported",
                help=WITHOUT_MAPS,
            )


def _note(node: NodeProto) -> str:
    from onnx import helper

    classes: list[Any] = next(
        (helper.get_attribute_value(item) for item in node.attribute if item.name.startswith("classlabels")),
        [],
    )
    names = [item.decode(errors="replace") if isinstance(item, bytes) else str(item) for item in classes]
    if len(names) > _MOST_CLASSES:
        names = [*names[: _MOST_CLASSES - 1], "...", names[-1]]
    shown = f", one column for each of the classes {', '.join(names)}" if names else ""
    return (
        f"the output {node.output[0]!r} is the tensor of scores{shown}; in the file it is a sequence of maps "
        "(ZipMap)"
    )
