"""The cheapest cover when costs must be measured, and most need not be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from intarsia.collage.search.cover_problem import CoverProblem
from intarsia.collage.search.cover_search import CoverSearch, search
from intarsia.collage.search.piece import INVALID
from intarsia.collage.search.search_result import Infeasible, SearchOptions, SearchResult

Measure = Callable[[Sequence[int]], Mapping[int, float | None]]
"""Measures these pieces: for each its seconds, or None if it is invalid. A piece left out was not measured
because the time is over: the search then ends with its best covers so far."""


@dataclass(frozen=True)
class LazyResult:
    """What a lazy search found.

    Attributes:
        result: The cheapest cover of which every piece is known; its bound and `is_exact` speak of the true
            costs. `Infeasible` if the known pieces make no cover.
        costs: Measured costs by piece; `INVALID` for pieces that were found invalid.
        rounds: Number of batches that were measured.
    """

    result: SearchResult | Infeasible
    costs: Mapping[int, float]
    rounds: int


def lazy_search(
    problem: CoverProblem,
    measure: Measure,
    budget: int | None = None,
    *,
    ahead: float = 0.02,
    options: SearchOptions | None = None,
) -> LazyResult:
    """Measure only pieces that can still be part of the cheapest cover.

    Unknown pieces take part with their bounds. The cheapest cover under bounds is looked for; its unknown
    pieces are measured; again, until the cheapest cover is wholly known. All other covers cost at least
    their bounds, so it is the cheapest by true costs, if the bounds were right and the search exact.

    Args:
        problem: Pieces to be measured have no cost, and a bound that their true cost does not undercut.
        measure: See `Measure`. Called with pieces in a fixed order, none twice.
        budget: Pieces to measure at most; None: as many as it takes.
        ahead: Relative slack, to save rounds: unknown pieces are measured if the cheapest cover would hold
            them at costs lower by about this part. 0: strictly what the cheapest cover needs.
        options: Effort of the search. A quick search chooses what to measure, this one proves the end; of
            more covers than one, the runner-ups may hold unknown pieces.
    """
    return _LazySearch(problem, measure, options or SearchOptions()).run(budget, ahead)


class _LazySearch:
    def __init__(self, problem: CoverProblem, measure: Measure, options: SearchOptions) -> None:
        self._search = CoverSearch(problem)
        self._measure = measure
        self._options = options
        self._quick = replace(options, covers=1, budget=0, width=min(options.width, 8), sweeps=3)
        self._costs: dict[int, float] = {}
        self._rounds = 0

    def run(self, budget: int | None, ahead: float) -> LazyResult:
        while True:
            result = self._search.find(self._quick)
            wanted = self._unknown(result)
            if not wanted:
                result = self._search.find(self._options)
                wanted = self._unknown(result)
                if not wanted:
                    return LazyResult(result, self._costs, self._rounds)
            batch = wanted + self._almost_wanted(wanted, ahead)
            if budget is not None:
                batch = batch[: budget - len(self._costs)]
            if not batch or not self._learn(batch):
                return LazyResult(self._with_known(), self._costs, self._rounds)

    def _unknown(self, result: SearchResult | Infeasible) -> list[int]:
        """The unknown pieces of the cheapest cover."""
        pieces = () if isinstance(result, Infeasible) else result.best.pieces
        return [piece for piece in pieces if not self._search.problem.pieces[piece].is_known]

    def _almost_wanted(self, wanted: list[int], ahead: float) -> list[int]:
        """The other unknown pieces that a saving of the part `ahead` would bring into the cheapest cover."""
        pieces = self._search.problem.pieces
        excess = self._search.excess()
        near = [
            (excess[piece], piece)
            for piece in excess
            if not pieces[piece].is_known and excess[piece] <= ahead * pieces[piece].bound
        ]
        return [piece for _, piece in sorted(near) if piece not in set(wanted)]

    def _learn(self, batch: list[int]) -> bool:
        """Measure, and return whether every requested piece was measured."""
        answer = self._measure(batch)
        self._rounds += 1
        costs = {piece: answer[piece] for piece in batch if piece in answer}
        costs_or_invalid = {piece: INVALID if cost is None else cost for piece, cost in costs.items()}
        self._costs.update(costs_or_invalid)
        self._search.learn(costs_or_invalid)
        return len(costs_or_invalid) == len(batch)

    def _with_known(self) -> SearchResult | Infeasible:
        """The cheapest cover of known pieces, with the bound over all."""
        problem = self._search.problem
        unknown = {index: INVALID for index, piece in enumerate(problem.pieces) if not piece.is_known}
        measured = search(problem.with_costs(unknown), self._options)
        under_bounds = self._search.find(replace(self._options, covers=1))
        if isinstance(measured, Infeasible) or isinstance(under_bounds, Infeasible):
            return measured
        lower = min(under_bounds.lower_bound, measured.best.cost)
        return replace(
            measured, lower_bound=lower, is_exact=measured.is_exact and lower == measured.best.cost
        )
