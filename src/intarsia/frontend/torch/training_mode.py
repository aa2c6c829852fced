"""Operators that a compiled program cannot contain: training mode and random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import torch

from intarsia.frontend.torch.node_names import module_path

_TRAINING_FLAGS: Final = ("train", "training", "use_input_stats")
_PROBABILITIES: Final = ("p", "dropout", "dropout_p")


def training_reasons(graph_module: Any) -> list[str]:
    """Return sentences about layers that are in training mode, in their order, each with its module.

    Args:
        graph_module: Graph of ATen operators, with its subgraphs.
    """
    return [
        f"{_subject(node)} is in training mode: {effect}"
        for node in _calls(graph_module)
        if (effect := _training_effect(node))
    ]


def random_reasons(graph_module: Any) -> list[str]:
    """Return sentences about operators that draw random numbers, dropout in training mode included."""
    return [f"{_subject(node)} draws random numbers" for node in _calls(graph_module) if _draws(node)]


def mutating_operators(graph_module: Any) -> bool:
    """Return whether an operator of a graph writes to one of its arguments."""
    return any(node.target._schema.is_mutable for node in _calls(graph_module))


def _calls(graph_module: Any) -> Iterator[Any]:
    for module in graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
                yield node


def _arguments(node: Any) -> dict[str, Any]:
    """Arguments by the names of the schema, defaults included."""
    schema = node.target._schema.arguments
    given = {item.name: item.default_value for item in schema if item.has_default_value()}
    given.update({item.name: value for item, value in zip(schema, node.args, strict=False)})
    return {**given, **node.kwargs}


def _training_effect(node: Any) -> str:
    arguments, name = _arguments(node), node.target._schema.name.split("::")[-1]
    if "dropout" in name and any(arguments.get(flag) is True for flag in _TRAINING_FLAGS):
        return "it drops elements at random" if _probability(arguments) else ""
    if "batch_norm" in name:
        # Without running statistics a batch is normalized by itself in both modes.
        has_statistics = arguments.get("running_mean") is not None
        is_training = arguments.get("training") is True or "functional" in name
        return (
            "it normalizes by the batch and updates its statistics" if has_statistics and is_training else ""
        )
    return ""


def _draws(node: Any) -> bool:
    if (
        torch.Tag.nondeterministic_seeded not in node.target.tags
        and "dropout" not in node.target._schema.name
    ):
        return False
    arguments = _arguments(node)
    flags = [arguments[flag] for flag in _TRAINING_FLAGS if flag in arguments]
    if flags and not any(flags):
        return False
    return _probability(arguments) != 0


def _probability(arguments: dict[str, Any]) -> float:
    """Probability of dropping an element; 1 for operators without such an argument."""
    given = [arguments[name] for name in _PROBABILITIES if isinstance(arguments.get(name), (int, float))]
    return float(given[0]) if given else 1.0


def _subject(node: Any) -> str:
    """Module and operator of a node for messages."""
    stack = node.meta.get("nn_module_stack") or {}
    path = module_path(list(stack.values())[-1][0]) if stack else ""
    operator = node.target._schema.name.split("::")[-1]
    return f"{path} ({operator})" if path else f"the operator {operator}"
