"""What ONNX calls an operator: those of the domain "intarsia" have equivalents."""

from __future__ import annotations

from intarsia.ir import Attrs, Call, Op
from intarsia.op.counted_rows_op import COUNTED_BOXES, COUNTED_INDICES
from intarsia.op.intarsia_ops import layout_permutation
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.tree_ensemble_op import TREE_ENSEMBLE

_WITHOUT_EQUIVALENT = frozenset({COUNTED_BOXES, COUNTED_INDICES, TREE_ENSEMBLE})
"""Operators that only native has, which introduces them itself."""


def onnx_operator(call: Call) -> tuple[str, str, Attrs]:
    """Operator type, domain and attributes of the node that stands for a call."""
    op = call.op
    assert isinstance(op, Op)
    if op.domain != INTARSIA_DOMAIN or op.name in _WITHOUT_EQUIVALENT:
        return op.name, op.domain, call.attrs
    if op.name == "layout_transform":
        order = layout_permutation(str(call.attrs["src_layout"]), str(call.attrs["dst_layout"]))
        return "Transpose", "", Attrs({"perm": order})
    return "Identity", "", Attrs()
