"""Outputs of a graph inside of a node: a branch of an If, the body of a Loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from intarsia.frontend.onnx.value_names import Names, flat_results, flat_types
from intarsia.ir import Type
from intarsia.op.onnx_types import type_to_proto


def declare_results(graph: Any, found: Names, type_: Type | None, fresh: Callable[[str], str]) -> None:
    """Make a value the outputs of a nested graph: each is produced in it, exactly once.

    Args:
        graph: The GraphProto, with all its nodes.
        found: Names of the value.
        type_: Its type, if that is known.
        fresh: Reserves a name, made from a hint.

    Raises:
        UnsupportedModelError: An absent value or a function is returned.
    """
    produced = {name for node in graph.node for name in node.output}
    results = flat_results(found)
    for name, own_type in zip(results, flat_types(type_, len(results)), strict=True):
        own = name
        if own not in produced or own in {item.name for item in graph.output}:
            own = fresh(f"{name}_result")
            graph.node.add(op_type="Identity", input=[name], output=[own])
        output = graph.output.add(name=own)
        if own_type is not None:
            output.type.CopyFrom(type_to_proto(own_type))
