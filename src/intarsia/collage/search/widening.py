"""Passes of growing width, until the best covers are proven or the budget is used up."""

from __future__ import annotations

import math

from intarsia.collage.search.cover import Cover, cost_of
from intarsia.collage.search.cover_problem import CoverProblem
from intarsia.collage.search.dual_bound import DualBound
from intarsia.collage.search.layered_pass import LayeredPass
from intarsia.collage.search.piece_table import PieceTable
from intarsia.collage.search.precedence import Precedence
from intarsia.collage.search.search_result import Infeasible, SearchOptions, SearchResult

TIE = 1e-10
"""Covers whose costs differ by a smaller part than this count as equally cheap."""

SLACK = 0.001
"""Without a cover at hand, one is looked for up to this part above the bound, then eight times that part."""


class Widening:
    """The steps of one search: what is known so far, and when to stop."""

    def __init__(
        self,
        problem: CoverProblem,
        table: PieceTable,
        bound: DualBound,
        precedence: Precedence,
        options: SearchOptions,
    ) -> None:
        self._problem, self._table, self._bound = problem, table, bound
        self._precedence, self._options = precedence, options
        self._covers: dict[tuple[int, ...], float] = {}
        self._lower = 0.0
        self._width = options.width
        self._slack = SLACK
        self._tried = 0.0
        self._expanded = 0
        self._passes = 0
        self._farthest = 0
        self._is_exact = False

    def goes_on(self) -> bool:
        """Whether another step is worth it."""
        tried = self._covers or math.isinf(self._tried)
        return not self._is_exact and (not tried or self._expanded < self._options.budget)

    def step(self) -> None:
        """Improve the bound, run a pass, and see what both have proven.

        While there are too few covers, a pass looks only a little above the bound, then further.
        """
        self._bound.improve(self._options.sweeps, self._worst())
        value = self._bound.value
        further = math.inf if math.isinf(self._slack) else value * (1 + self._slack)
        reach = min(self._worst() * (1 - TIE), further)
        proven = value if value >= reach else self._pass(value, reach)
        self._lower = max(self._lower, proven)
        if proven >= self._worst() * (1 - TIE) or math.isinf(value):
            self._is_exact = True
        elif proven < reach:
            self._width *= self._options.growth
        if math.isinf(self._worst()):
            self._slack = self._slack * 8 if self._slack < 1 else math.inf
        self._tried = reach

    def _pass(self, value: float, reach: float) -> float:
        """Look for covers below `reach`; return what all covers that were not found cost at least."""
        prices = self._bound.prices(reach)
        layered = LayeredPass(self._table, prices, self._precedence, reach - value, self._options.covers)
        result = layered.run(self._width, self._options.width, self._options.budget - self._expanded)
        self._expanded += result.expanded
        self._passes += 1
        self._farthest = max(self._farthest, result.farthest)
        for pieces in result.covers:
            self._covers[pieces] = cost_of(self._problem, pieces)
        return min(reach, value + result.dropped)

    def _worst(self) -> float:
        """The cost of the last of the covers wanted; infinite while there are fewer."""
        costs = sorted(self._covers.values())
        return costs[self._options.covers - 1] if len(costs) >= self._options.covers else math.inf

    def answer(self) -> SearchResult | Infeasible:
        """What was found."""
        if not self._covers:
            no_path = math.isinf(self._bound.value)
            return Infeasible(
                stuck_at=self._bound.farthest if no_path else self._farthest, is_proven=self._is_exact
            )
        best = sorted(self._covers.items(), key=lambda item: (item[1], item[0]))[: self._options.covers]
        covers = tuple(Cover(pieces, cost) for pieces, cost in best)
        lower = covers[0].cost if self._is_exact else min(self._lower, covers[0].cost)
        return SearchResult(covers, lower, self._is_exact, self._expanded, self._passes)
