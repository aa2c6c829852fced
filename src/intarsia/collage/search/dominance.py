"""Leaving out states that another state with the same covered nodes makes superfluous."""

from __future__ import annotations

from collections import defaultdict

from intarsia.collage.search.frontier import Entry, Extra, Frontier
from intarsia.collage.search.piece_table import PieceTable
from intarsia.collage.search.prices import Prices

RIVALS = 12
"""Each entry is compared with so many cheaper ones, times the number of covers wanted."""

Gaps = tuple[tuple[float, ...], ...]


class Dominance:
    """Drops entries that cannot be needed for the k cheapest covers.

    Let states A and B differ in the classes of producers of live values only. Whatever completes B
    completes A. For a live value with classes a and b, whose uncovered consumers end up in between one
    and m pieces, the completion of A is dearer by at most D = max over s of (t(a, s) - t(b, s)), times m
    if positive, plus the difference of the prices of its open edges. If cost(A) + sum of D <= cost(B) for k
    entries A, then for each cover through B there are k others that cost no more: B is dropped.
    """

    def __init__(self, table: PieceTable, prices: Prices, keep: int) -> None:
        self._table = table
        self._prices = prices
        self._keep = keep
        problem = table.problem
        self._readers = sorted({table.spec_of(piece) for piece in prices.pieces})
        self._makers = [table.classes.index(number) for number in range(table.class_count)]
        self._seconds = problem.transition.seconds
        self._gaps: dict[tuple[int, int], Gaps] = {}

    def thin(self, frontier: Frontier) -> None:
        """Drop the dominated entries of a frontier, and the states that lose all of them."""
        if len(frontier.states) == 1 or not frontier.live:
            return
        groups: dict[Extra, list[tuple[float, tuple[int, ...], Entry]]] = defaultdict(list)
        for (classes, extra), entries in frontier.states.items():
            groups[extra].extend((entry[0], classes, entry) for entry in entries)
        gaps = [self._gaps_of(value, frontier) for value in frontier.live]
        states: dict[tuple[tuple[int, ...], Extra], list[Entry]] = {}
        for extra, group in groups.items():
            group.sort(key=_cost)
            kept: list[tuple[float, tuple[int, ...]]] = []
            for cost, classes, entry in group:
                if not self._is_dominated(cost, classes, kept, gaps):
                    kept.append((cost, classes))
                    states.setdefault((classes, extra), []).append(entry)
        frontier.states = states

    def _is_dominated(
        self,
        cost: float,
        classes: tuple[int, ...],
        kept: list[tuple[float, tuple[int, ...]]],
        gaps: list[Gaps],
    ) -> bool:
        better = 0
        for rival_cost, rival in kept[: RIVALS * self._keep]:
            if rival != classes:
                for gap, mine, other in zip(gaps, rival, classes, strict=True):
                    rival_cost += gap[mine][other]  # noqa: PLW2901 - a sum that starts at the rival's cost
                better += rival_cost <= cost
                if better == self._keep:
                    return True
        return False

    def _gaps_of(self, value: int, frontier: Frontier) -> Gaps:
        """For each two classes a, b: what a live value of class a can cost more than one of class b."""
        consumers = (self._table.topology.consumers[value] >> frontier.first) & ~frontier.window
        key = (value, consumers << frontier.first)
        if key not in self._gaps:
            self._gaps[key] = self._compute(value, key[1])
        return self._gaps[key]

    def _compute(self, value: int, consumers: int) -> Gaps:
        table, most = self._table, consumers.bit_count()
        size = table.problem.sizes[value]
        edges = [edge for node, edge in table.edges_out[value].items() if consumers >> node & 1]
        owed = [sum(self._prices.edges[edge][a] for edge in edges) for a in range(table.class_count)]
        costs = [[self._seconds(maker, reader, size) for reader in self._readers] for maker in self._makers]
        return tuple(
            tuple(_most_dearer(costs[a], costs[b], most) + owed[a] - owed[b] for b in range(len(costs)))
            for a in range(len(costs))
        )


def _most_dearer(mine: list[float], other: list[float], most: int) -> float:
    """What one to `most` readings can cost more here than there."""
    worst = max(a - b for a, b in zip(mine, other, strict=True))
    return worst * most if worst > 0 else worst


def _cost(found: tuple[float, tuple[int, ...], Entry]) -> float:
    return found[0]
