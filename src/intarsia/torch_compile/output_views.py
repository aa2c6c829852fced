"""Results that share memory with inputs or with each other, which PyTorch's own views regenerate.

A program returns memory of its own for each result. Where a graph returns a view of an input (x.view(-1)), or
two views of one tensor, callers may rely on the shared memory. So the program computes the tensor that owns
the memory, and a small graph of views, run by PyTorch, makes the results of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from intarsia.torch_compile.fallback import LeftToPyTorchError
from intarsia.torch_compile.memory_order import inverse, memory_order

_IN_PLACE: Final = frozenset(
    {
        "setitem",
        "iadd",
        "isub",
        "imul",
        "itruediv",
        "ifloordiv",
        "ipow",
        "imod",
        "iand",
        "ior",
        "ixor",
        "delitem",
    }
)


@dataclass(frozen=True, slots=True)
class ResultPlan:
    """How the results of a graph are made.

    Attributes:
        computed: Nodes of the graph that the program computes.
        orders: Order of the dimensions in memory of each of them; None for a contiguous one.
        views: Function of the graph's arguments and the computed tensors that returns all results; None if
            the computed tensors are the results.
    """

    computed: tuple[Any, ...]
    orders: tuple[tuple[int, ...] | None, ...]
    views: Any | None


def plan_results(graph: Any) -> ResultPlan:
    """Decide which results of a graph a program computes, and which are views.

    Args:
        graph: Graph of dynamo, with fake tensors as example values.

    Raises:
        LeftToPyTorchError: Results share memory in a way that views cannot regenerate.
    """
    results = list(_output(graph).args[0])
    owners = _owners(graph)
    shared = Counter(_storage(node) for node in set(filter(_is_tensor, results)))
    computed: dict[Any, None] = {}
    for node in filter(_is_tensor, results):
        owner = owners[_storage(node)]
        if owner.op != "placeholder":
            computed[owner if shared[_storage(node)] > 1 else node] = None
    orders = tuple(memory_order(_value(node)) for node in computed)
    if results == list(computed) and not any(orders):
        return ResultPlan(tuple(computed), orders, None)
    views = _ViewGraph(graph, dict(zip(computed, orders, strict=True)))
    return ResultPlan(tuple(computed), orders, views.module(results))


class _ViewGraph:
    """A graph of the views between computed tensors or placeholders, and results."""

    def __init__(self, graph: Any, computed: Mapping[Any, tuple[int, ...] | None]) -> None:
        self._graph = torch.fx.Graph()
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self._copies = {node: self._graph.placeholder(node.name) for node in placeholders}
        self._copies.update({node: self._graph.placeholder(f"computed_{node.name}") for node in computed})
        for node, order in computed.items():
            if order is not None:
                permuted = self._copies[node], inverse(order)
                self._copies[node] = self._graph.call_method("permute", permuted)

    def module(self, results: list[Any]) -> Any:
        """Return the graph module that returns the results."""
        self._graph.output(tuple(self._copy(node) for node in results))
        return torch.fx.GraphModule(torch.nn.Module(), self._graph)

    def _copy(self, node: Any) -> Any:
        if not isinstance(node, torch.fx.Node):
            return node  # None or a number
        if node not in self._copies:
            if _is_computation(node):
                raise LeftToPyTorchError(f"a result shares memory with {node.name}, which is not only a view")
            for argument in node.all_input_nodes:
                self._copy(argument)
            self._copies[node] = self._graph.node_copy(node, self._copies.__getitem__)
        return self._copies[node]


def has_computation(graph: Any) -> bool:
    """Return whether a graph does more than making views and computing with sizes."""
    return any(_is_computation(node) for node in graph.nodes if node.op not in {"placeholder", "output"})


def _is_computation(node: Any) -> bool:
    """Whether a node does more than making a view or computing with sizes."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if node.op not in {"call_function", "call_method"} or name in _IN_PLACE:
        return True
    if name.endswith("_") and not name.endswith("__"):
        return True
    storages = {_storage(item) for item in _tensors(node.meta.get("example_value"))}
    if not storages:
        return False
    of_arguments = {
        _storage(item) for argument in node.all_input_nodes for item in _tensors(_value(argument))
    }
    return not storages <= of_arguments


def _owners(graph: Any) -> dict[int, Any]:
    """The first node with each storage. Tuples are left out: their elements have nodes of their own."""
    owners: dict[int, Any] = {}
    for node in graph.nodes:
        if _is_tensor(node):
            owners.setdefault(_storage(node), node)
    return owners


def _output(graph: Any) -> Any:
    return next(node for node in reversed(graph.nodes) if node.op == "output")


def _value(node: Any) -> Any:
    return node.meta.get("example_value")


def _is_tensor(node: Any) -> bool:
    return isinstance(node, torch.fx.Node) and isinstance(_value(node), torch.Tensor)


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def _storage(item: Any) -> int:
    tensor = _value(item) if isinstance(item, torch.fx.Node) else item
    return int(tensor.untyped_storage()._cdata)
