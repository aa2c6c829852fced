"""The pieces of a problem with their boundaries worked out, once, for the bound and for the search."""

from __future__ import annotations

import math
from dataclasses import dataclass

from intarsia.collage.search.cover_problem import CoverProblem
from intarsia.collage.search.footprint import Footprint, Topology
from intarsia.collage.search.node_sets import RangeUnion, nodes_of


@dataclass(frozen=True, slots=True)
class Port:
    """One way in which a value enters a piece.

    Attributes:
        value: The node whose value enters.
        edges: The data-flow edges from it to its consumers inside.
        costs: For each class of producers the seconds of the transition; infinite where no piece of that
            class can produce the value without containing these consumers.
    """

    value: int
    edges: tuple[int, ...]
    costs: tuple[float, ...]


class PieceTable:
    """Everything about the usable pieces that does not change while costs are learnt.

    Attributes:
        usable: The pieces that may be part of a cover: not invalid, and each value they consume can be
            produced outside of them.
        footprints: For each usable piece its footprint; pieces with one mask share it.
        outer_costs: For each usable piece its dispatch, and the transitions from parameters and to results.
        inputs: For each usable piece the values it consumes, as pairs of value and port.
        open_edges: For each usable piece the edges that leave it.
        ports: Ports that the pairs in `inputs` refer to.
        edges: For each edge (producer, consumer).
        edges_out: For each node the edges from it to its consumers, by consumer.
        edges_in: For each node the edges into it.
        classes: For each spec the class of producers it belongs to.
    """

    def __init__(self, problem: CoverProblem) -> None:
        self.problem = problem
        self.topology = Topology(problem)
        self.classes = problem.transition.producer_classes()
        self.class_count = max(self.classes, default=-1) + 1
        self.edges: list[tuple[int, int]] = []
        self.edges_out: list[dict[int, int]] = [{} for _ in range(problem.size)]
        self.edges_in: list[list[int]] = [[] for _ in range(problem.size)]
        for node, values in enumerate(problem.operands):
            for value in dict.fromkeys(values):
                self.edges_out[value][node] = len(self.edges)
                self.edges_in[node].append(len(self.edges))
                self.edges.append((value, node))
        valid = [index for index, piece in enumerate(problem.pieces) if not piece.is_invalid]
        self._describe(valid)
        self._connect(valid)
        self.usable = tuple(self.inputs)

    def spec_of(self, piece: int) -> int:
        """The spec of a piece."""
        return self.problem.pieces[piece].spec

    def _describe(self, valid: list[int]) -> None:
        """Footprints, costs towards the outside and open edges; each once per mask (and spec)."""
        shapes: dict[int, tuple[Footprint, tuple[int, ...]]] = {}
        outer: dict[tuple[int, int], float] = {}
        self.footprints: dict[int, Footprint] = {}
        self.open_edges: dict[int, tuple[int, ...]] = {}
        self.outer_costs: dict[int, float] = {}
        entering = self._parameters_of_nodes()
        for index in valid:
            piece = self.problem.pieces[index]
            if piece.mask not in shapes:
                footprint = self.topology.footprint(piece.mask)
                shapes[piece.mask] = (footprint, self._edges_leaving(footprint, piece.mask))
            self.footprints[index], self.open_edges[index] = shapes[piece.mask]
            key = (piece.mask, piece.spec)
            if key not in outer:
                parameters = entering.over(self.footprints[index].runs)
                outer[key] = self._outer_cost(piece.mask, piece.spec, parameters)
            self.outer_costs[index] = outer[key]

    def _parameters_of_nodes(self) -> RangeUnion:
        consumed = [0] * self.problem.size
        for number, parameter in enumerate(self.problem.parameters):
            for node in nodes_of(parameter.consumers):
                consumed[node] |= 1 << number
        return RangeUnion(consumed)

    def _edges_leaving(self, footprint: Footprint, mask: int) -> tuple[int, ...]:
        out = ((self.edges_out[value], self.topology.consumers[value] & ~mask) for value in footprint.leaving)
        return tuple(edges[consumer] for edges, consumers in out for consumer in nodes_of(consumers))

    def _outer_cost(self, mask: int, spec: int, parameters: int) -> float:
        problem, outside = self.problem, self.problem.transition.outside
        seconds = problem.transition.seconds
        entering = (problem.parameters[number].size for number in nodes_of(parameters))
        cost = problem.dispatch[spec] + sum(seconds(outside, spec, size) for size in entering)
        results = nodes_of(mask & problem.results)
        return cost + sum(seconds(spec, outside, problem.sizes[node]) for node in results)

    def _connect(self, valid: list[int]) -> None:
        """Ports, for all pieces whose inputs can be produced outside."""
        producing = [0] * len(self.edges)
        for index in valid:
            producer_class = 1 << self.classes[self.spec_of(index)]
            for edge in self.open_edges[index]:
                producing[edge] |= producer_class
        self.ports: list[Port] = []
        self.inputs: dict[int, tuple[tuple[int, int], ...]] = {}
        numbers: dict[tuple[int, int, int], int] = {}
        for index in valid:
            inputs = []
            for value, consumers in self.footprints[index].inputs:
                key = (value, consumers, self.spec_of(index))
                if key not in numbers:
                    numbers[key] = len(self.ports)
                    self.ports.append(self._port(*key, producing))
                inputs.append((value, numbers[key]))
            if all(min(self.ports[port].costs) < math.inf for _, port in inputs):
                self.inputs[index] = tuple(inputs)

    def _port(self, value: int, consumers: int, spec: int, producing: list[int]) -> Port:
        edges = tuple(self.edges_out[value][consumer] for consumer in nodes_of(consumers))
        size, seconds = self.problem.sizes[value], self.problem.transition.seconds
        costs = [math.inf] * self.class_count
        for producer, number in enumerate(self.classes):
            if all(producing[edge] >> number & 1 for edge in edges):
                costs[number] = seconds(producer, spec, size)
        return Port(value, edges, tuple(costs))

    def conflicting(self) -> list[int]:
        """For each spec the mask of the specs it is in conflict with."""
        masks = [0] * self.problem.specs
        for one, other in self.problem.conflicts:
            masks[one] |= 1 << other
            masks[other] |= 1 << one
        return masks
