"""Forests of two classes that onnxruntime labels wrong.

Measured with onnxruntime 1.31.1 on the CPU against onnx.reference. Where leaves of a TreeEnsembleClassifier
have weights for both of two classes, the scores are right, but the label is 1 where the score of the second
class is positive and 0 elsewhere. That is not the class of the higher score, and where the labels of the
model are not 0 and 1 it is none of them. With base values the scores are wrong as well. Three or more
classes, and leaves that all belong to class 0, are right.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from intarsia.ir import Call, Op
from intarsia.support.errors import CompileError
from intarsia.toolchain.external_weights import all_graphs
from intarsia.toolchain.input_identity import used_names

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

_FOREST: Final = "TreeEnsembleClassifier"
_LABELS: Final = ("classlabels_int64s", "classlabels_strings")
_BASES: Final = ("base_values", "base_values_as_tensor")


def mislabels(call: Call) -> bool:
    """Whether a call is such a forest; whether its label is used does not show here."""
    is_forest = isinstance(call.op, Op) and call.op.name == _FOREST and bool(call.op.domain)
    return is_forest and _is_of_both_classes(
        max((len(_listed(call.attrs.get(name))) for name in _LABELS), default=0),
        _listed(call.attrs.get("class_ids")),
    )


def refuse_mislabelled_forests(graph: GraphProto) -> None:
    """Refuse a model in which such a forest has a result that is used and wrong.

    Raises:
        CompileError: There is one.
    """
    used = used_names(graph)
    for inner in all_graphs(graph):
        for node in inner.node:
            if node.op_type == _FOREST and node.domain and _has_wrong_result(node, used):
                raise CompileError(
                    "onnxruntime cannot compile this: it labels two classes wrong whose leaves have weights "
                    f"for both (node {node.name or node.output[0]!r})"
                )


def _has_wrong_result(node: NodeProto, used: Collection[str]) -> bool:
    attributes = {item.name: item for item in node.attribute}
    labels = max(
        (
            len(attributes[name].ints) + len(attributes[name].strings)
            for name in _LABELS
            if name in attributes
        ),
        default=0,
    )
    ids = attributes["class_ids"].ints if "class_ids" in attributes else ()
    is_wrong = any(name in attributes for name in _BASES) or node.output[0] in used
    return is_wrong and _is_of_both_classes(labels, ids)


def _is_of_both_classes(labels: int, ids: Collection[int]) -> bool:
    return labels == 2 and len(set(ids)) == 2


def _listed(value: object) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else ()
