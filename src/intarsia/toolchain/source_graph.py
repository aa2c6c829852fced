"""The nodes of a kernel's source, by which profilers of engines name what they ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from intarsia.frontend.onnx.node_origin import origin_of
from intarsia.runtime.kernel_profiler import SourceNode
from intarsia.toolchain.onnx_port import parse_model

if TYPE_CHECKING:
    from onnx import GraphProto

    from intarsia.runtime.kernel import KernelSource

_PROLOGUES: Final = frozenset({"Pad", "DequantizeLinear"})
"""Operators that engines compute as a part of the kernel that reads their result; others that vanish are a
part of the kernel that computes their argument."""


@dataclass(frozen=True, slots=True)
class EngineKernel:
    """A kernel as an engine reports it.

    Attributes:
        name: Name of its code.
        nodes: Names of nodes of the source that are known to be in it.
        operators: Operators of which one is in it; none if any may be.
        is_conversion: Whether it converts or packs a value for another kernel.
    """

    name: str
    nodes: frozenset[str] = frozenset()
    operators: frozenset[str] = frozenset()
    is_conversion: bool = False


@dataclass(frozen=True, slots=True)
class SourceGraph:
    """Nodes of a model and their connections; those without variable inputs are left out.

    Attributes:
        nodes: Nodes by their unique names, in an executable order. Several may stand for one node of the
            model that the user has given: they are equal then.
        written: Name of the node that computes each tensor.
        read: Names of the nodes that each node reads from.
        inputs: Names of the model's inputs.
    """

    nodes: dict[str, SourceNode]
    written: Mapping[str, str]
    read: Mapping[str, tuple[str, ...]]
    inputs: frozenset[str]

    @classmethod
    def of(cls, source: KernelSource) -> Self:
        """Return the graph of a source.

        Raises:
            CompileError: The source is no model.
        """
        return cls.of_graph(parse_model(source, source.toolchain).graph)

    @classmethod
    def of_graph(cls, graph: GraphProto) -> Self:
        """Return the graph of a model; nodes in bodies of control flow belong to the node with the body."""
        initialized = frozenset(tensor.name for tensor in graph.initializer)
        constant = set(initialized)
        nodes: dict[str, SourceNode] = {}
        written: dict[str, str] = {}
        read: dict[str, tuple[str, ...]] = {}
        for node in graph.node:
            inputs = [name for name in node.input if name and name not in constant]
            if not inputs and node.input:
                constant.update(node.output)
                continue
            node_name = node.name or node.output[0]  # as the importer names it
            nodes[node_name] = SourceNode(origin_of(node), node.op_type)
            written |= dict.fromkeys(node.output, node_name)
            read[node_name] = tuple(dict.fromkeys(written[name] for name in inputs if name in written))
        given = frozenset(item.name for item in graph.input if item.name not in initialized)
        return cls(nodes, written, read, given)

    def assign(self, kernels: Sequence[EngineKernel]) -> list[tuple[str, ...]]:
        """Return the unique names of the nodes of each kernel, with those that vanish in a kernel.

        A kernel without a node of its operators has those before its nodes, as a convolution that is named
        after the normalization behind it. A node that no kernel names is a part of the last kernel that
        computes an argument of it, as an activation behind a convolution. A padding is a part of the first
        kernel that reads its result.

        Args:
            kernels: Kernels in the order of execution.
        """
        owners: defaultdict[str, set[int]] = defaultdict(set)
        for number, kernel in enumerate(kernels):
            for name in kernel.nodes & self.nodes.keys():
                owners[name].add(number)
        for number, kernel in enumerate(kernels):
            for name in self._before(kernel, owners):
                owners[name].add(number)
        self._assign_others(owners)
        members: list[list[str]] = [[] for _ in kernels]
        for name in self.nodes:
            for number in owners[name]:
                members[number].append(name)
        return [tuple(names) for names in members]

    def _assign_others(self, owners: defaultdict[str, set[int]]) -> None:
        """Give nodes without owners those of the nodes that they read, or that read them."""
        readers: dict[str, list[str]] = defaultdict(list)
        for name, arguments in self.read.items():
            for argument in arguments:
                readers[argument].append(name)
        for name in reversed(self.nodes):
            if self.nodes[name].operator in _PROLOGUES and not owners[name]:
                owners[name] = _ends(owners, readers[name], min)
        for name in self.nodes:
            owners[name] = owners[name] or _ends(owners, self.read[name], max)
        for name in reversed(self.nodes):
            owners[name] = owners[name] or _ends(owners, readers[name], min)

    def _before(self, kernel: EngineKernel, owners: Mapping[str, set[int]]) -> frozenset[str]:
        """Return the nodes without owners before those of a kernel, up to one of its operators."""
        named = [name for name in kernel.nodes if name in self.nodes]
        if not kernel.operators or any(self.nodes[name].operator in kernel.operators for name in named):
            return frozenset()
        before: dict[str, str] = {}  # each node with the one that reads it
        waiting = named
        while waiting:
            reader = waiting.pop()
            for name in self.read[reader]:
                if owners.get(name) or name in before:
                    continue
                before[name] = reader
                if self.nodes[name].operator in kernel.operators:
                    return frozenset(_path(name, before))
                waiting.insert(0, name)
        return frozenset()


def _path(name: str, before: Mapping[str, str]) -> list[str]:
    """Return a node and those behind it, up to the first that is no key."""
    path = []
    while name in before:
        path.append(name)
        name = before[name]
    return path


def _ends(
    owners: Mapping[str, set[int]], names: Sequence[str], choose: Callable[[list[int]], int]
) -> set[int]:
    """Return the first or last of the kernels of some nodes, as a set; empty if they have none."""
    numbers = [number for name in names for number in owners[name]]
    return {choose(numbers)} if numbers else set()
