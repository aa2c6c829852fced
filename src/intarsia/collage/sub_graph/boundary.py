"""What flows into a set of nodes and out of it."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.index_set import IndexSet


@dataclass(frozen=True, slots=True)
class Boundary:
    """The nodes at the border of a set `inside` (seed collage_rfc, SubGraph).

    Only values that have to be handed over count: inlinable nodes (operators, scalars ...) are no input. A
    constant is an input, but never an exit: whoever uses it outside has it, whether it is inside or not.

    Attributes:
        entry: Inside nodes that use a value from outside.
        exit: Inside nodes whose value is used outside, or is the function's result.
        input: Outside nodes whose value is used inside, constants that are not scalar among them.
        output: Outside nodes that use a value from inside.
    """

    entry: IndexSet
    exit: IndexSet
    input: IndexSet
    output: IndexSet

    @classmethod
    def of(cls, graph: DataflowGraph, inside: IndexSet) -> Boundary:
        """The boundary of any set: linear in its edges."""
        held, members = set(inside), set(inside - graph.everywhere)
        entry: list[int] = []
        exits: list[int] = []
        used: set[int] = set()
        users: set[int] = set()
        for index in sorted(members):
            outer_inputs = [one for one in graph.flow_inputs[index] if one not in held]
            outer_users = [one for one in graph.flow_outputs[index] if one not in members]
            used.update(outer_inputs)
            users.update(outer_users)
            if outer_inputs:
                entry.append(index)
            if outer_users or graph[index].is_external:
                exits.append(index)
        return cls(*map(graph.set_of, (entry, exits, used, users)))

    def joined(self, other: Boundary, graph: DataflowGraph, inside: IndexSet) -> Boundary:
        """The boundary of the union `inside` of two sets: looks only at their boundaries."""
        entry = (index for index in self.entry | other.entry if _leads_out(graph.flow_inputs[index], inside))
        exits = (
            index
            for index in self.exit | other.exit
            if graph[index].is_external or _leads_out(graph.flow_outputs[index], inside)
        )
        return Boundary(
            graph.set_of(entry),
            graph.set_of(exits),
            (self.input | other.input) - inside,
            (self.output | other.output) - inside,
        )


def _leads_out(ends: tuple[int, ...], inside: IndexSet) -> bool:
    return any(end not in inside for end in ends)
