"""The node of the imported model that an exported node stands for, where their names differ.

Names of nodes are unique in an exported model. A node of the imported model may have become several: the
first one has its name, and the others say in their metadata where they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from onnx import NodeProto

_KEY: Final = "intarsia.node"


def write_origin(node: NodeProto, origin: str) -> None:
    """Write the name of the node that an exported node stands for into it, if the names differ."""
    if origin and node.name != origin:
        node.metadata_props.add(key=_KEY, value=origin)


def origin_of(node: NodeProto) -> str:
    """Return the name of the node that a node stands for; nodes without names have that of their output."""
    for item in node.metadata_props:
        if item.key == _KEY:
            return str(item.value)
    return str(node.name or node.output[0])
