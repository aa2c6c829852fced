"""The covering problem: which pieces, together, run every node once, at the least cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from intarsia.collage.search.piece import Piece
from intarsia.collage.search.transition import Transition


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that comes from outside: its bytes, and the mask of the nodes that consume it."""

    size: float
    consumers: int


@dataclass(frozen=True)
class CoverProblem:
    """Nodes with data flow, and the pieces they can be covered with.

    A cover is a set of pieces that is disjoint, complete, uses no two specs in conflict, and whose quotient
    graph (pieces as vertices, an edge where a value crosses) is acyclic. It costs, in seconds, for each
    piece its cost and the dispatch of its spec; for each value (or parameter) and each piece that consumes
    it without containing it one transition; for each external result one transition to the outside.

    Attributes:
        operands: For each node the nodes whose values it consumes, all of them smaller.
        sizes: Bytes of each node's value.
        results: Mask of the nodes whose value is an external result.
        pieces: The candidates; a cover names them by index.
        dispatch: For each spec the seconds that one piece costs beyond its inside.
        transition: Cost of a value that crosses a boundary.
        parameters: Values that come from outside.
        conflicts: Pairs of specs that must not occur in one cover.
    """

    operands: tuple[tuple[int, ...], ...]
    sizes: tuple[float, ...]
    results: int
    pieces: tuple[Piece, ...]
    dispatch: tuple[float, ...]
    transition: Transition
    parameters: tuple[Parameter, ...] = ()
    conflicts: frozenset[tuple[int, int]] = frozenset()

    def __post_init__(self) -> None:
        """Check that all parts speak of the same nodes and specs (convexity is checked by the search).

        Raises:
            ValueError: Naming what does not fit.
        """
        if len(self.sizes) != self.size:
            raise ValueError(f"{self.size} nodes, but {len(self.sizes)} sizes of values")
        if self.transition.outside != self.specs:
            raise ValueError(f"{self.specs} specs, but transitions between {self.transition.outside}")
        for node, values in enumerate(self.operands):
            if any(not 0 <= value < node for value in values):
                raise ValueError(f"node {node} consumes {values}; nodes must be in topological order")
        masks = [piece.mask for piece in self.pieces] + [param.consumers for param in self.parameters]
        if any(mask >> self.size for mask in (*masks, self.results)):
            raise ValueError(f"a mask names a node beyond the last one, {self.size - 1}")
        specs = [piece.spec for piece in self.pieces] + [spec for pair in self.conflicts for spec in pair]
        if any(not 0 <= spec < self.specs for spec in specs):
            raise ValueError(f"a piece or conflict names a spec beyond the last one, {self.specs - 1}")
        if any(one == other for one, other in self.conflicts):
            raise ValueError("a spec cannot be in conflict with itself")

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.operands)

    @property
    def specs(self) -> int:
        """The number of specs, without the outside."""
        return len(self.dispatch)

    def with_costs(self, costs: Mapping[int, float]) -> CoverProblem:
        """The same problem in which the pieces with these indices have these costs (`INVALID` included)."""
        pieces = list(self.pieces)
        for index, cost in costs.items():
            pieces[index] = replace(pieces[index], cost=cost)
        return replace(self, pieces=tuple(pieces))
