"""Opaque operators for the reference toolchain, computed by what declares their domain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from intarsia.ir import ABSENT, TensorType
from intarsia.op.opaque import operator_domain
from intarsia.op.opset import OPSETS

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto
    from onnx.reference.op_run import OpRun


def opaque_operator_classes(model: ModelProto) -> list[type[OpRun]]:
    """Return a class, as onnx's evaluator takes them, for each opaque operator that a model uses.

    Raises:
        UnsupportedModelError: The domain of one cannot be used here, or no installed package declares it.
    """
    local = {function.domain for function in model.functions}
    used = {(node.domain, node.op_type) for node in _nodes(model.graph.node)}
    used = {(domain, name) for domain, name in used if domain not in OPSETS and domain not in local}
    for domain in sorted({domain for domain, _ in used}):
        operator_domain(domain)  # complains now rather than in the middle of a run
    return [_operator_class(domain, name) for domain, name in sorted(used)]


def _nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g.node)


def _operator_class(domain: str, name: str) -> type[OpRun]:
    from onnx.reference.op_run import OpRun

    def run(self: Any, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        node = _renamed(self.onnx_node)
        types = [ABSENT if value is None else TensorType.of(value) for value in inputs]
        present = [value for value in inputs if value is not None]
        return tuple(operator_domain(domain).evaluate(node, types, present))

    return type(name, (OpRun,), {"op_domain": domain, "_run": run})


def _renamed(node: NodeProto) -> NodeProto:
    """The node with the names of inputs and outputs that domains expect."""
    renamed = type(node)()
    renamed.CopyFrom(node)
    renamed.input[:] = [f"i{position}" if name else "" for position, name in enumerate(node.input)]
    renamed.output[:] = [f"o{position}" for position in range(len(node.output))]
    renamed.name = ""
    return renamed
