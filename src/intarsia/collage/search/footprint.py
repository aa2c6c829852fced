"""What a set of nodes looks like from outside: its runs, what it consumes, what leaves it."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.search.cover_problem import CoverProblem
from intarsia.collage.search.node_sets import RangeUnion, mask_of, nodes_of, runs_of


@dataclass(frozen=True, slots=True)
class Footprint:
    """A convex set of nodes.

    Attributes:
        low: Its smallest node.
        local: The set, shifted right by `low`.
        runs: Its maximal runs of consecutive nodes, as (first, one after the last).
        inputs: The values from outside that it consumes, each with the mask of its consumers inside.
        leaving: Its nodes whose values are consumed outside.
        is_single_exit: Whether at most one of its nodes is consumed outside, an external result, or
            consumed by no node. Then every node in it leads to that one.
    """

    low: int
    local: int
    runs: tuple[tuple[int, int], ...]
    inputs: tuple[tuple[int, int], ...]
    leaving: tuple[int, ...]
    is_single_exit: bool


class Topology:
    """The consumers of each node, as masks, for one problem.

    Attributes:
        consumers: For each node the mask of the nodes that consume its value.
        ancestors: For each node what it depends on, itself not.
        descendants: For each node what depends on it, itself not.
    """

    def __init__(self, problem: CoverProblem) -> None:
        size = problem.size
        self.operands = [mask_of(values) for values in problem.operands]
        self.consumers = [0] * size
        self.ancestors = [0] * size
        self.descendants = [0] * size
        for node, values in enumerate(problem.operands):
            for value in values:
                self.consumers[value] |= 1 << node
                self.ancestors[node] |= self.ancestors[value] | 1 << value
        for node in reversed(range(size)):
            for value in problem.operands[node]:
                self.descendants[value] |= self.descendants[node] | 1 << node
        unused = mask_of([node for node in range(size) if not self.consumers[node]])
        self._ends = unused | problem.results
        self._operands_of = RangeUnion(self.operands)
        self._consumers_of = RangeUnion(self.consumers)

    def footprint(self, mask: int) -> Footprint:
        """Describe a set of nodes.

        Raises:
            ValueError: It is not convex.
        """
        runs = runs_of(mask)
        inputs = self._operands_of.over(runs) & ~mask
        outside = self._consumers_of.over(runs) & ~mask
        if self.below(outside) & mask:
            raise ValueError(f"the nodes {list(nodes_of(mask))} are not convex: a path leaves and comes back")
        leaving = 0
        for node in nodes_of(outside):
            leaving |= self.operands[node]
        leaving &= mask
        ends = leaving | (self._ends & mask)
        low = runs[0][0]
        return Footprint(
            low,
            mask >> low,
            runs,
            tuple((value, self.consumers[value] & mask) for value in nodes_of(inputs)),
            tuple(nodes_of(leaving)),
            ends & (ends - 1) == 0,
        )

    def below(self, mask: int) -> int:
        """These nodes and everything that depends on them."""
        union = mask
        for node in nodes_of(mask):
            union |= self.descendants[node]
        return union

    def above(self, mask: int) -> int:
        """These nodes and everything they depend on."""
        union = mask
        for node in nodes_of(mask):
            union |= self.ancestors[node]
        return union
