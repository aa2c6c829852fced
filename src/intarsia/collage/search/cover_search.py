"""The search for the cheapest covers."""

from __future__ import annotations

from collections.abc import Mapping

from intarsia.collage.search.cover_problem import CoverProblem
from intarsia.collage.search.dual_bound import DualBound
from intarsia.collage.search.node_sets import mask_of, nodes_of
from intarsia.collage.search.piece_table import PieceTable
from intarsia.collage.search.precedence import Precedence
from intarsia.collage.search.search_result import Infeasible, SearchOptions, SearchResult
from intarsia.collage.search.widening import Widening


def search(problem: CoverProblem, options: SearchOptions | None = None) -> SearchResult | Infeasible:
    """Find the cheapest covers.

    Pieces without a cost take part with their bound. Same problem, same answer, to the last tie.

    Raises:
        ValueError: A piece is not convex.
    """
    return CoverSearch(problem).find(options or SearchOptions())


class CoverSearch:
    """A search that can go on after costs were learnt, from the prices it has.

    It alternates two steps until both meet: the bound is improved, with the best covers known as the goal;
    then a `LayeredPass`, wider each time, looks for covers below the best known. Pieces and states that the
    bound proves too dear are left out. The passes end when one was exact, when the cheapest thing it
    dropped costs as much as the covers at hand, or when the budget is used up: then the bound and what was
    dropped bound the distance of the covers from the optimum.

    Source: the covering formulation and the first uncovered index are Collage's (Jeon et al., 2022); the
    widening passes are complete anytime beam search (Zhang, 1998).
    """

    def __init__(self, problem: CoverProblem) -> None:
        self.problem = problem
        self._table = PieceTable(problem)
        self._bound = DualBound(self._table, [piece.floor for piece in problem.pieces])
        self._precedence = Precedence(self._table)

    def learn(self, costs: Mapping[int, float]) -> None:
        """Set the costs of pieces, `INVALID` included; all else that the search has computed is kept."""
        for index, cost in costs.items():
            before = self.problem.pieces[index].floor
            if index in self._table.footprints and index in self._table.inputs and cost != before:
                self._bound.raise_cost(index, cost - before)
        self.problem = self.problem.with_costs(costs)
        self._bound.settle()

    def find(self, options: SearchOptions) -> SearchResult | Infeasible:
        """Find the cheapest covers for the costs as known now."""
        if self._uncovered():
            return self._why_uncovered()
        widening = Widening(self.problem, self._table, self._bound, self._precedence, options)
        while widening.goes_on():
            widening.step()
        return widening.answer()

    @property
    def bound(self) -> float:
        """Seconds that every cover costs at least, by the prices as the last search left them."""
        return self._bound.value

    def excess(self) -> Mapping[int, float]:
        """For each usable piece: every cover with it costs at least so much more than `bound`."""
        return self._bound.excess()

    def _uncovered(self) -> int:
        """The mask of the nodes that no usable piece contains."""
        union = 0
        for index in self._table.usable:
            piece = self.problem.pieces[index]
            if not piece.is_invalid:
                union |= piece.mask
        return mask_of(range(self.problem.size)) & ~union

    def _why_uncovered(self) -> Infeasible:
        anything, valid = 0, 0
        for piece in self.problem.pieces:
            anything |= piece.mask
            valid |= 0 if piece.is_invalid else piece.mask
        missing = self._uncovered()
        return Infeasible(
            tuple(nodes_of(missing & ~anything)),
            tuple(nodes_of(missing & anything & ~valid)),
            tuple(nodes_of(missing & valid)),
        )
