"""Operators of old opsets that onnx's version converter silently converts wrongly.

Where the old opset can express the right result, the node is rewritten before the conversion; else attributes
of the new opset are set afterwards. Sources: the operators' versions in onnx's Changelog.md, and its tests of
those versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from intarsia.frontend.onnx.graph_walk import graphs_of, label, nodes_of
from intarsia.frontend.onnx.group_normalization import PER_CHANNEL_SINCE, repeat_per_channel
from intarsia.support.errors import InvalidModelError, UnsupportedModelError
from intarsia.support.free_names import numbered_names

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

Shapes: TypeAlias = dict[str, tuple[int | None, ...]]

_ALIGNED = frozenset({"Add", "Sub", "Mul", "Div", "Pow"})
"""Below opset 7 `axis` aligns the second operand; onnx refuses other operators with it."""

_RESIZED = frozenset({"Resize", "Upsample"})
"""Below opset 11, positions were measured from the corners of the elements."""

_MISCONVERTED = {
    "GroupNormalization": PER_CHANNEL_SINCE,
    "Hardmax": 13,
    "Resize": 11,
    "Upsample": 10,
    **dict.fromkeys(_ALIGNED, 7),
}


def is_deprecated_but_known(name: str, version: int) -> bool:
    """Whether onnx has no schema of an operator at an opset (any more), but the import rewrites it."""
    return name == "GroupNormalization" and 18 <= version < PER_CHANNEL_SINCE


def check_functions(model: ModelProto, version: int) -> None:
    """Refuse functions of another opset than the model's where onnx's inliner would change their meaning."""
    for function in model.functions:
        function_version = next((item.version for item in function.opset_import if not item.domain), version)
        for node in function.node:
            if (
                function_version != version
                and not node.domain
                and function_version < _MISCONVERTED.get(node.op_type, 0)
            ):
                raise _refusal(
                    node, function_version, f"the function {function.name!r} has another opset than the model"
                )


def rewrite_legacy_operators(model: ModelProto, version: int) -> ModelProto:
    """Rewrite operators that onnx converts wrongly, at the model's opset; the same model if there is none.

    Args:
        model: Model with its weights declared.
        version: Opset of the model.

    Raises:
        UnsupportedModelError: A rank is needed that is unknown.
    """
    legacy = [node for node in nodes_of(model.graph) if not node.domain and _is_legacy(node, version)]
    if not legacy:
        return model
    result = type(model)()
    result.CopyFrom(model)
    shapes = _infer_shapes(model)
    names = _fresh_names(result.graph)
    for graph in graphs_of(result.graph):
        nodes = list(graph.node)
        del graph.node[:]
        for node in nodes:
            try:
                replaced = _rewrite(node, version, shapes, names)
            except InvalidModelError as error:
                error.add_note(f"at node {label(node)!r}")
                raise
            for item in replaced:
                item.name = item.name or label(node)
            graph.node.extend(replaced)
    return result


def _is_legacy(node: NodeProto, version: int) -> bool:
    if node.op_type == "Hardmax":
        return version < 13
    if node.op_type == "GroupNormalization":
        return is_deprecated_but_known(node.op_type, version)
    return version < 7 and node.op_type in _ALIGNED and bool(_attribute(node, "broadcast", 0))


def _rewrite(node: NodeProto, version: int, shapes: Shapes, names: Iterator[str]) -> list[NodeProto]:
    if node.domain or not _is_legacy(node, version):
        return [node]
    if node.op_type == "Hardmax":
        return _flatten_hardmax(node, version, names)
    if node.op_type == "GroupNormalization":
        shape = shapes.get(node.input[0]) if node.input else None
        channels = shape[1] if shape is not None and len(shape) > 1 else None
        return repeat_per_channel(node, _attribute(node, "num_groups", 0), channels, names)
    return _align_operand(node, version, shapes, names)


def _flatten_hardmax(node: NodeProto, version: int, names: Iterator[str]) -> list[NodeProto]:
    """Hardmax was over all dimensions from `axis` on."""
    from onnx import helper

    if version < 5:
        raise _refusal(node, version, "its result cannot be given a computed shape there")
    shape, flat, result = next(names), next(names), next(names)
    axis = _attribute(node, "axis", 1)
    return [
        helper.make_node("Shape", [node.input[0]], [shape]),
        helper.make_node("Flatten", [node.input[0]], [flat], axis=axis),
        helper.make_node("Hardmax", [flat], [result], name=node.name, axis=1),
        helper.make_node("Reshape", [result, shape], [node.output[0]]),
    ]


def _align_operand(node: NodeProto, version: int, shapes: Shapes, names: Iterator[str]) -> list[NodeProto]:
    """The second operand with dimensions of 1 after its own, so that both end together."""
    from onnx import helper

    axis = _attribute(node, "axis", None)
    if axis is None:
        return [node]
    if any(shapes.get(name) is None for name in node.input):
        raise _refusal(node, version, "its attribute 'axis' needs the ranks of both operands")
    first, second = (len(shapes[name]) for name in node.input)
    kept = [item for item in node.attribute if item.name != "axis"]
    del node.attribute[:]
    node.attribute.extend(kept)
    missing = first - second - (axis if axis >= 0 else axis + first)
    if missing <= 0 or not second:
        return [node]
    aligned = next(names)
    axes = list(range(second, second + missing))
    before = helper.make_node("Unsqueeze", [node.input[1]], [aligned], axes=axes)
    node.input[1] = aligned
    return [before, node]


def resize_modes(model: ModelProto, version: int) -> list[str]:
    """The `nearest_mode` of every Resize and Upsample of an opset below 11, in the order of `nodes_of`.

    Raises:
        UnsupportedModelError: No mode is right for all axes of a node.
    """
    if version >= 11:
        return []
    constants = _constants(model.graph)
    return [_nearest_mode(node, version, constants) for node in nodes_of(model.graph) if _is_resize(node)]


def restore_resize(before: list[str], after: ModelProto, version: int) -> None:
    """Give the converted Resize nodes the meaning that they had.

    Args:
        before: Modes from `resize_modes`.
        after: The converted model, which is changed.
        version: The opset that it was converted from.
    """
    from onnx import helper

    if version >= 11:
        return
    nodes = [node for node in nodes_of(after.graph) if _is_resize(node)]
    if len(nodes) != len(before):
        raise UnsupportedModelError(f"operator 'Resize' of opset {version} cannot be converted reliably")
    for node, mode in zip(nodes, before, strict=True):
        kept = [item for item in node.attribute if item.name == "mode"]
        del node.attribute[:]
        node.attribute.extend(kept)
        node.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
        node.attribute.append(helper.make_attribute("nearest_mode", mode))


def _is_resize(node: NodeProto) -> bool:
    return not node.domain and node.op_type in _RESIZED


def _nearest_mode(node: NodeProto, version: int, constants: dict[str, Any]) -> str:
    """Resize-10 rounded up on axes that shrink and down on those that grow."""
    if node.op_type == "Upsample" or _attribute(node, "mode", b"nearest") != b"nearest":
        return "floor"
    scales = constants.get(node.input[1])
    if scales is None:
        raise _refusal(node, version, "how it rounds depends on its scales, which are computed")
    if scales.ndim != 1 or scales.dtype.kind != "f":
        raise _refusal(node, version, "its scales are no vector of floats")
    up = any(scale > 1 for scale in scales)
    down = any(scale < 1 and not float(1 / scale).is_integer() for scale in scales)
    if up and down:
        raise _refusal(node, version, "it rounds differently on axes that grow and that shrink")
    return "ceil" if down else "floor"


def _constants(graph: GraphProto) -> dict[str, Any]:
    """Values of initializers and Constant nodes by name."""
    from onnx import numpy_helper

    tensors = {item.name: item for part in graphs_of(graph) for item in part.initializer}
    for node in nodes_of(graph):
        if node.op_type == "Constant" and not node.domain and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    wanted = {name for node in nodes_of(graph) if _is_resize(node) for name in node.input[1:]}
    return {name: numpy_helper.to_array(tensors[name]) for name in wanted & tensors.keys()}


def _infer_shapes(model: ModelProto) -> Shapes:
    """Infer the shapes of values by onnx; None for an unknown dimension."""
    from onnx import shape_inference

    inferred = shape_inference.infer_shapes(model)
    shapes: Shapes = {}
    for graph in graphs_of(inferred.graph):
        shapes |= {item.name: tuple(item.dims) for item in graph.initializer}
        for item in (*graph.input, *graph.output, *graph.value_info):
            if item.type.tensor_type.HasField("shape"):
                dims = item.type.tensor_type.shape.dim
                shapes[item.name] = tuple(
                    dim.dim_value if dim.HasField("dim_value") else None for dim in dims
                )
    for node in nodes_of(model.graph):
        if node.op_type in _ALIGNED and not node.domain and node.input[0] in shapes:
            shapes.setdefault(node.output[0], (None,) * len(shapes[node.input[0]]))
    return shapes


def _fresh_names(graph: GraphProto) -> Iterator[str]:
    taken = {name for node in nodes_of(graph) for name in (*node.input, *node.output)}
    taken |= {item.name for part in graphs_of(graph) for item in (*part.input, *part.initializer)}
    return numbered_names("legacy_", taken)


def _attribute(node: NodeProto, name: str, default: Any) -> Any:
    from onnx import helper

    values: Iterable[Any] = (helper.get_attribute_value(item) for item in node.attribute if item.name == name)
    return next(iter(values), default)


def _refusal(node: NodeProto, version: int, reason: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"operator {node.op_type!r} of opset {version} at node {label(node)!r} cannot be converted: {reason}",
        help=f"export the model at opset {max(13, _MISCONVERTED.get(node.op_type, 0))} or above",
    )
