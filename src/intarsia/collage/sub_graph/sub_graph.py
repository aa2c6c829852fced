"""A set of nodes that may become a function (seed collage_rfc, SubGraph)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.index_set import IndexSet
from intarsia.collage.graph.node_kind import node_label
from intarsia.collage.sub_graph.boundary import Boundary
from intarsia.collage.sub_graph.quotient import quotient_cycle
from intarsia.collage.sub_graph.sub_graph_config import ANY_SHAPE, SubGraphConfig
from intarsia.collage.sub_graph.validity import (
    block_complaints,
    convexity_complaints,
    named_nodes,
    type_complaints,
)
from intarsia.ir import Attrs, AttrValue, Expr, Function, Var
from intarsia.op import OpPatternKind

COMPOSITE: Final = "Composite"


@dataclass(frozen=True, repr=False)
class SubGraph:
    """Some nodes of a dataflow graph, and which parts of them are to be functions; nothing is built yet.

    Make one with `SubGraph.of`. Two are equal if they hold the same nodes and the same nested sub-graphs with
    the same attributes; the graph is not compared. Any set is a sub-graph; whether it can become a function
    is checked with `is_valid`.

    Attributes:
        inside: Its nodes.
        nested: Disjoint parts of it that become functions, in order of their first nodes. Without any,
            rewriting changes nothing.
        graph: The graph.
        boundary: The border; also as `entry`, `exit`, `input` and `output`.
    """

    inside: IndexSet
    nested: tuple[NestedSubGraph, ...]
    graph: DataflowGraph = field(compare=False)
    boundary: Boundary = field(compare=False)

    @classmethod
    def of(
        cls,
        graph: DataflowGraph,
        inside: IndexSet | Iterable[int],
        nested: Iterable[NestedSubGraph] = (),
    ) -> SubGraph:
        """The sub-graph of some nodes: linear in their edges.

        Raises:
            ValueError: An index that is out of range or given twice, or a set of another size.
        """
        inside = inside if isinstance(inside, IndexSet) else graph.set_of(inside)
        return cls(inside, _sorted(nested), graph, Boundary.of(graph, inside))

    @property
    def entry(self) -> IndexSet:
        """Inside nodes that use a value from outside."""
        return self.boundary.entry

    @property
    def exit(self) -> IndexSet:
        """Inside nodes whose value is used outside, or is the function's result; never constants."""
        return self.boundary.exit

    @property
    def input(self) -> IndexSet:
        """Outside nodes whose value is used inside: what is handed in, and constants that are not scalar."""
        return self.boundary.input

    @property
    def output(self) -> IndexSet:
        """Outside nodes that use a value from inside."""
        return self.boundary.output

    @property
    def first_inside_index(self) -> int:
        """The smallest index inside."""
        return self.inside.first_inside_index()

    @property
    def last_inside_index(self) -> int:
        """The largest index inside."""
        return self.inside.last_inside_index()

    @cached_property
    def depth(self) -> int:
        """Nodes on the longest path inside: n for a chain of n calls; leaves and literals do not count."""
        graph, longest = self.graph, dict.fromkeys(self.inside, 0)
        for index in longest:
            below = max((longest.get(one, 0) for one in graph[index].inputs), default=0)
            is_leaf = index in graph.everywhere or isinstance(graph[index].expr, (Var, Function))
            longest[index] = below + (not is_leaf)
        return max(longest.values(), default=0)

    @cached_property
    def kind(self) -> OpPatternKind:
        """The least fusable kind inside; constants and inlinable nodes do not count."""
        kinds = self.graph.kinds
        return max(
            (kinds[index] for index in self.inside - self.graph.everywhere), default=OpPatternKind.ELEMWISE
        )

    @cached_property
    def label(self) -> str:
        """The names of what is called inside, in order, joined by "+": "Conv+Add+Relu"."""
        return "+".join(filter(None, map(node_label, self.exprs)))

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The expressions inside, in order."""
        return self.graph.exprs(self.inside)

    @cached_property
    def has_taps(self) -> bool:
        """Whether an exit is used inside, too."""
        return any(True for _ in self._taps())

    def _taps(self) -> Iterator[int]:
        """The exits that are used inside, too."""
        flow = self.graph.flow_outputs
        return (index for index in self.exit if any(user in self.inside for user in flow[index]))

    def is_valid(self, config: SubGraphConfig) -> bool:
        """Whether it can become a function, and has an allowed shape."""
        return self.invalid_reason(config) is None

    def invalid_reason(self, config: SubGraphConfig) -> str | None:
        """What keeps it from being valid, for people: a phrase that goes on after "it"; None if it is.

        Exits, depth and taps are as `config` says. Besides, its nodes lie in one block, with all that belongs
        to them; nested sub-graphs are inside, valid, do not overlap and need each other in no circle; no path
        leaves and comes back; and what crosses the border are values of known type, of which those that come
        in are no tuples or functions.
        """
        exits = len(self.exit)
        if config.max_exits and exits > config.max_exits:
            return (
                f"has {exits} results ({named_nodes(self.graph, self.exit)}), allowed is {config.max_exits}"
            )
        if config.max_depth and self.depth > config.max_depth:
            return f"is {self.depth} nodes deep, allowed is {config.max_depth}"
        if not config.allow_taps and self.has_taps:
            return f"returns what it uses itself ({named_nodes(self.graph, self._taps())})"
        return self.structure_complaint

    @cached_property
    def structure_complaint(self) -> str | None:
        """The part of `invalid_reason` that depends on no config."""
        return next(self._structure_complaints(), None)

    def _structure_complaints(self) -> Iterator[str]:
        if not self.exit:
            yield "computes nothing that is used"
        yield from block_complaints(self.graph, self.inside)
        yield from self._nested_complaints()
        yield from convexity_complaints(self.graph, self.boundary)
        yield from type_complaints(self.graph, self.boundary)

    def _nested_complaints(self) -> Iterator[str]:
        """Nested sub-graphs that lie outside, overlap, are invalid, or need each other in a circle."""
        union = self.graph.set_of()
        for region in self.nested:
            inner = region.sub_graph
            if not inner.inside.is_subset(self.inside):
                yield f"has a nested function with nodes from outside: {inner.inside - self.inside}"
            if union.intersects(inner.inside):
                yield f"has nested functions that overlap: in {union & inner.inside}"
            union |= inner.inside
            reason = None if inner.inside == self.inside else inner.invalid_reason(ANY_SHAPE)
            if reason is not None:
                yield f"has a nested function {inner.inside} that {reason}"
        if any(len(region.sub_graph.exit) > 1 for region in self.nested) and len(self.nested) > 1:
            parts = [region.sub_graph.inside for region in self.nested]
            circle = quotient_cycle(self.graph, parts, within=self.inside)
            if circle:
                yield "has nested functions that need each other: " + ", ".join(str(parts[i]) for i in circle)

    def disjoint_union(self, other: SubGraph) -> SubGraph:
        """The nodes of both; nested sub-graphs with the same attributes become one, but for Composite ones.

        Costs as much as the borders are long.

        Raises:
            ValueError: They overlap, or are of two graphs.
        """
        if self.graph is not other.graph:
            raise ValueError("the sub-graphs are of two graphs")
        if self.inside.intersects(other.inside):
            raise ValueError(f"the sub-graphs {self.inside} and {other.inside} overlap")
        inside = self.inside | other.inside
        nested = list(self.nested)
        for region in other.nested:
            at = next((place for place, found in enumerate(nested) if found.can_union(region)), None)
            if at is None:
                nested.append(region)
            else:
                nested[at] = nested[at].disjoint_union(region)
        boundary = self.boundary.joined(other.boundary, self.graph, inside)
        return SubGraph(inside, _sorted(nested), self.graph, boundary)

    def with_attrs(self, attrs: Attrs | Mapping[str, AttrValue]) -> SubGraph:
        """The same nodes, to be wrapped as a whole in a function with these attributes."""
        attrs = attrs if isinstance(attrs, Attrs) else Attrs(attrs)
        return SubGraph(self.inside, (NestedSubGraph(self, attrs),), self.graph, self.boundary)

    def subst(self, graph: DataflowGraph, new_index: Mapping[int, int]) -> SubGraph:
        """The same sub-graph in another graph, given the new index of each node.

        Raises:
            ValueError: A node has no new index, or two have the same.
        """
        inside = self.inside.subst(len(graph), new_index)
        nested = (NestedSubGraph(one.sub_graph.subst(graph, new_index), one.attrs) for one in self.nested)
        return SubGraph.of(graph, inside, nested)

    def __str__(self) -> str:
        """Its nodes and what they are: "{3,5..6} Conv+Add"."""
        return f"{self.inside} {self.label}".rstrip()

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class NestedSubGraph:
    """A sub-graph and the attributes of the function that it becomes when the program is rewritten.

    Until then nothing is built: sub-graphs are sets, joined and compared by the thousand.

    Attributes:
        sub_graph: The body; it may have nested sub-graphs itself.
        attrs: Attributes of the function: Composite, Primitive, Compiler, target ...
    """

    sub_graph: SubGraph
    attrs: Attrs

    def can_union(self, other: NestedSubGraph) -> bool:
        """Whether two of them may be one function: their attributes agree, and name no Composite."""
        return COMPOSITE not in self.attrs and self.attrs == other.attrs

    def disjoint_union(self, other: NestedSubGraph) -> NestedSubGraph:
        """Both as one function.

        Raises:
            ValueError: They may not be one, or they overlap.
        """
        if not self.can_union(other):
            raise ValueError(f"functions with {self.attrs} and {other.attrs} are not one")
        return NestedSubGraph(self.sub_graph.disjoint_union(other.sub_graph), self.attrs)

    def __str__(self) -> str:
        attrs = ", ".join(f"{name}={value!r}" for name, value in self.attrs.items())
        return f"{self.sub_graph}[{attrs}]"


def _sorted(nested: Iterable[NestedSubGraph]) -> tuple[NestedSubGraph, ...]:
    return tuple(sorted(nested, key=lambda one: one.sub_graph.inside))
