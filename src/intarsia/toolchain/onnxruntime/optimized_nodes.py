"""The nodes of a source that each node of onnxruntime's optimised model computes.

onnxruntime keeps no record of what it fuses. Most fused nodes have the name of one of their nodes with an
addition ("fused X", "X_nchwc", "X_token_3", "X/MatMulAddFusion"), or write a tensor of the source. From there
the source is followed backwards, to the tensors that the fused node reads, or to an operator of its type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from intarsia.toolchain.source_graph import EngineKernel, SourceGraph

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

_CONVERSIONS: Final = frozenset({"ReorderInput", "ReorderOutput"})
"""Operators that onnxruntime inserts for its blocked layout."""
_MOVES: Final = frozenset({"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Cast"})
"""Operators that are conversions where the source has another operator."""
_BLOCKED: Final = "_nchwc"
"""End of the names of nodes in onnxruntime's blocked layout."""
_ADDITION: Final = re.compile(r"_(?:token_\d+|bn|mul)$")
"""End of a name that onnxruntime made unique, such as that of an activation behind a Transpose that it moved,
or end of the name of a BatchNormalization or Mul that became a convolution."""


@dataclass(frozen=True, slots=True)
class _Optimized:
    """A node of the optimised model: name, operator, domain, and the tensors that it reads and writes."""

    name: str
    operator: str
    domain: str = ""
    inputs: frozenset[str] = frozenset()
    outputs: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: NodeProto, constants: frozenset[str]) -> _Optimized:
        inputs = frozenset(name for name in node.input if name and name not in constants)
        return cls(node.name, node.op_type, node.domain, inputs, tuple(node.output))

    @property
    def kernel_name(self) -> str:
        """The operator, with the last part of a domain of onnxruntime's: "Conv (nchwc)"."""
        variant = self.domain.rpartition(".")[2]
        return f"{self.operator} ({variant})" if variant not in {"", "microsoft"} else self.operator

    @property
    def is_conversion(self) -> bool:
        return self.operator in _CONVERSIONS


def kernels_of(
    order: Sequence[tuple[str, str]], optimized: GraphProto, source: SourceGraph
) -> list[EngineKernel]:
    """Return the kernels of a profile, with the nodes of the source that are known to be in each.

    Args:
        order: Names and operator types of the nodes that ran, in their order.
        optimized: The optimised model.
        source: Nodes of the source.
    """
    constants = frozenset(tensor.name for tensor in optimized.initializer)
    by_key = {(node.name, node.op_type): _Optimized.of(node, constants) for node in optimized.node}
    nodes = [by_key.get(key, _Optimized(*key)) for key in order]
    anchors = [_anchors(node, source) for node in nodes]
    taken = frozenset(name for names in anchors for name in names)
    kernels = []
    for node, names in zip(nodes, anchors, strict=True):
        is_conversion = node.is_conversion or (node.operator in _MOVES and not names)
        members = names | _fused(node, names, source, taken)
        operators = frozenset({node.operator.removeprefix("Fused")})
        kernels.append(EngineKernel(node.kernel_name, members, operators, is_conversion))
    return kernels


def _anchors(node: _Optimized, source: SourceGraph) -> frozenset[str]:
    """Return the nodes of the source that the name or a result of an optimised node refers to."""
    if node.is_conversion:
        return frozenset()
    names = {source.written[output] for output in node.outputs if output in source.written}
    named = _named_node(node.name, source)
    if named:
        names.add(named)
    if node.operator in _MOVES and node.operator not in {source.nodes[name].operator for name in names}:
        return frozenset()
    return frozenset(names)


def _named_node(text: str, source: SourceGraph) -> str:
    """Return the node of the source that the name of an optimised node refers to; "" if there is none.

    Convolutions and pools in the blocked layout are named after the tensor that they wrote before.
    """
    blocked = text.removesuffix(_BLOCKED)
    is_blocked = blocked != text
    text = blocked.removeprefix("fused ")
    while text:
        if is_blocked and text in source.written:
            return source.written[text]
        if text in source.nodes:
            return text
        text = text[: match.start()] if (match := _ADDITION.search(text)) else text.rpartition("/")[0]
    return ""


def _fused(
    node: _Optimized, anchors: frozenset[str], source: SourceGraph, taken: frozenset[str]
) -> frozenset[str]:
    """Return the nodes between the tensors that an optimised node reads and its anchors.

    There are none where it reads tensors that the source lacks: then its operator has to do.
    """
    is_bounded = all(name in source.written or name in source.inputs for name in node.inputs)
    if not node.outputs or not is_bounded:
        return frozenset()
    read = {source.written[name] for name in node.inputs if name in source.written}
    members: set[str] = set()
    waiting = list(anchors)
    while waiting:
        for name in source.read[waiting.pop()]:
            if name not in read and name not in taken and name not in members:
                members.add(name)
                waiting.append(name)
    return frozenset(members)
