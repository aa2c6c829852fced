"""One call as a standalone ONNX node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.ir import ABSENT, Attrs, Expr, Function, Op

if TYPE_CHECKING:
    from onnx import NodeProto

OUTPUTS = "outputs"
"""The attribute of a call that says how many values an operator returns; ONNX has none of that name."""


def node_of(op: Expr, args: tuple[Expr, ...], attrs: Attrs, outputs: int) -> NodeProto:
    """The node of an operator call, with inputs i0, i1, ... and outputs o0, o1, ...; bodies are left out."""
    from onnx import NodeProto

    from intarsia.op.attribute_protos import attribute_to_proto

    assert isinstance(op, Op)
    node = NodeProto(op_type=op.name, domain=op.domain)
    for position, arg in enumerate(args):
        if not isinstance(arg, Function):
            node.input.append("" if arg.checked_type == ABSENT else f"i{position}")
    node.output.extend(f"o{position}" for position in range(outputs))
    node.attribute.extend(
        attribute_to_proto(name, value, op.name, op.domain)
        for name, value in attrs.items()
        if name != OUTPUTS
    )
    return node
