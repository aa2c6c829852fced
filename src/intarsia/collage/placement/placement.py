"""Which sub-graphs of a program run where, as plain data: what Collage has found, to be applied or saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from intarsia.build.kernel_table import COMPILER, SYMBOL, TARGET
from intarsia.collage.gather_specs import NATIVE
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.partition_names import PartitionNames
from intarsia.collage.sub_graph import NestedSubGraph, SubGraph, parallel_rewrite
from intarsia.ir import Attrs, Function, IRModule, with_module_fields
from intarsia.measure.measure_input import Candidate, PlainData
from intarsia.passes import PartitionGraph
from intarsia.passes.functions.sealed import is_sealed
from intarsia.support.errors import UsageError
from intarsia.support.number_ranges import parse_ranges, ranges_text
from intarsia.target import Target
from intarsia.transform.option_type import option_type

KIND = "collage"
"""Kind of the candidates that are placements of a whole program."""

_LONGEST_NAME = 4
"""Largest number of operators that a partition's name lists; longer partitions give their number."""


@option_type
@dataclass(frozen=True, slots=True)
class Composite:
    """A group of operators within a partition that its toolchain runs as one.

    Attributes:
        name: The toolchain's name for it: "acme.conv_relu".
        nodes: Stable numbers, as those of the partition.
    """

    name: str
    nodes: tuple[int, ...]


@option_type
@dataclass(frozen=True, slots=True)
class Partition:
    """A sub-graph that one toolchain runs.

    Attributes:
        function: Name of the global function it is part of.
        target: Text of the target.
        nodes: Stable numbers in the function's dataflow graph (`stable_nodes`).
        label: Its operators: "Conv+Relu".
        composites: Groups within it.
    """

    function: str
    target: str
    nodes: tuple[int, ...]
    label: str
    composites: tuple[Composite, ...] = ()

    @property
    def toolchain(self) -> str:
        """Name of the toolchain; "native" for a target without one."""
        return Target.parse(self.target).toolchain or NATIVE

    def to_json(self) -> dict[str, PlainData]:
        """The partition as plain data; nodes as ranges: "3,5..6"."""
        composites: list[PlainData] = [
            {"name": each.name, "nodes": ranges_text(each.nodes)} for each in self.composites
        ]
        return {
            "function": self.function,
            "target": self.target,
            "nodes": ranges_text(self.nodes),
            "label": self.label,
            "composites": composites,
        }

    @classmethod
    def from_json(cls, data: Any) -> Partition:
        """The partition that `to_json` wrote.

        Raises:
            UsageError: It did not write that.
        """
        try:
            return cls(
                str(data["function"]),
                str(data["target"]),
                parse_ranges(data["nodes"]),
                str(data["label"]),
                tuple(
                    Composite(str(each["name"]), parse_ranges(each["nodes"])) for each in data["composites"]
                ),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"a partition of a plan is malformed: {type(error).__name__}: {error}"
            ) from error


@option_type
@dataclass(frozen=True, slots=True)
class Placement:
    """Partitions of a module; what is in none is left to the host.

    Attributes:
        partitions: Disjoint within each function, in order of their first nodes.
    """

    partitions: tuple[Partition, ...]

    @property
    def summary(self) -> str:
        """How many partitions each toolchain has: "openvino 2, onnxruntime 1"."""
        counts = Counter(partition.toolchain for partition in self.partitions)
        return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "host"

    @property
    def candidate(self) -> Candidate:
        """The placement as a candidate for the whole program."""
        return Candidate(KIND, [partition.to_json() for partition in self.partitions])

    @classmethod
    def of_candidate(cls, candidate: Candidate) -> Placement:
        """The placement that a candidate stands for.

        Raises:
            UsageError: It stands for none.
        """
        if candidate.kind != KIND or not isinstance(candidate.trace, list):
            raise UsageError(f"a candidate of kind {candidate.kind!r} is no placement")
        return cls(tuple(map(Partition.from_json, candidate.trace)))

    def applied(self, mod: IRModule) -> IRModule:
        """The module with its partitions as global functions marked for their toolchains.

        It is the same module if there are none.

        Raises:
            UsageError: A partition does not fit the module, or overlaps another one.
        """
        if not self.partitions:
            return mod
        supply = PartitionNames(var.name for var in mod.functions)
        functions = dict(mod.functions)
        for name in dict.fromkeys(partition.function for partition in self.partitions):
            function = functions[mod.global_var(name)] if name in mod else None
            if not isinstance(function, Function) or is_sealed(function):
                raise UsageError(
                    f"the module has no function {name!r} that could be partitioned, as the plan requires",
                    help="the plan belongs to another program",
                )
            mine = [partition for partition in self.partitions if partition.function == name]
            functions[mod.global_var(name)] = _rewritten(function, mine, supply)
        return PartitionGraph()(with_module_fields(mod, functions=functions))

    def function_names(self, mod: IRModule) -> tuple[str, ...]:
        """What the function of each partition is called in `applied(mod)`, and so its kernel."""
        supply = PartitionNames(var.name for var in mod.functions)
        names: dict[Partition, str] = {}
        for function in dict.fromkeys(partition.function for partition in self.partitions):
            mine = [partition for partition in self.partitions if partition.function == function]
            names.update(
                {partition: supply.fresh(partition.toolchain, _hint(partition)) for partition in mine}
            )
        return tuple(names[partition] for partition in self.partitions)


def stable_nodes(graph: DataflowGraph) -> tuple[int, ...]:
    """The index of each node that has a stable number, in order of these numbers.

    Constants and what is inlinable (operators among them) have none: one program text may store them once or
    often. So the numbers are the same for structurally equal functions.
    """
    return tuple(node.index for node in graph if node.index not in graph.everywhere)


def _rewritten(function: Function, partitions: Sequence[Partition], supply: PartitionNames) -> Function:
    graph = DataflowGraph.of(function)
    sub_graphs = [_sub_graph(graph, each, supply) for each in partitions]
    return parallel_rewrite(graph, sub_graphs)


def _sub_graph(graph: DataflowGraph, partition: Partition, supply: PartitionNames) -> SubGraph:
    numbered = stable_nodes(graph)
    named = (partition.nodes, *(composite.nodes for composite in partition.composites))
    highest = max(node for nodes in named for node in nodes)
    if highest >= len(numbered):
        raise UsageError(
            f"the partition {partition.label!r} has node {highest}, but the nodes of function"
            f" {partition.function!r} end at {len(numbered) - 1}",
            help="the plan belongs to another program",
        )
    nested = [
        NestedSubGraph(_of_numbers(graph, numbered, composite.nodes), Attrs({"Composite": composite.name}))
        for composite in partition.composites
    ]
    inside = _of_numbers(graph, numbered, partition.nodes).inside
    return SubGraph.of(graph, inside, nested).with_attrs(_marks(partition, supply))


def _marks(partition: Partition, supply: PartitionNames) -> Attrs:
    """What marks the function; without a toolchain, `build` chooses one (as `rules.primitive`)."""
    marks = Attrs({"Primitive": 1, SYMBOL: supply.fresh(partition.toolchain, _hint(partition))})
    if Target.parse(partition.target).toolchain is None:
        return marks
    return marks.updated(**{COMPILER: partition.toolchain, TARGET: partition.target})


def _hint(partition: Partition) -> str:
    """What a partition is called after: its operators, or the first and the last one."""
    names = partition.label.split("+")
    return "_".join(names) if len(names) <= _LONGEST_NAME else f"{names[0]}_to_{names[-1]}_{len(names)}"


def _of_numbers(graph: DataflowGraph, numbered: Sequence[int], nodes: Sequence[int]) -> SubGraph:
    """The sub-graph of some stable numbers, with all that belongs to them."""
    inside = graph.set_of()
    for node in nodes:
        inside = inside | graph.unit(numbered[node])
    return SubGraph.of(graph, inside)


def instantiate_placement(mod: IRModule, target: Target, trace: PlainData) -> IRModule:  # noqa: ARG001  # of all instantiators
    """The program that a candidate of this kind stands for (entry point `intarsia.candidates`)."""
    return Placement.of_candidate(Candidate(KIND, trace)).applied(mod)
