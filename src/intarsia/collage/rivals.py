"""What other covers cost than the one that was chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from intarsia.collage.search import (
    Cover,
    CoverProblem,
    CoverSearch,
    Parameter,
    SearchOptions,
    SearchResult,
    cost_of,
    faults_of,
)
from intarsia.collage.search.node_sets import mask_of, nodes_of

_QUICK = SearchOptions(budget=2_000, width=16)
"""For problems in which most is fixed."""

_BOUND = SearchOptions(budget=0)
"""One pass: what is wanted are prices."""


@dataclass(frozen=True)
class Rivals:
    """A chosen cover, against others that differ from it in one place.

    Attributes:
        problem: Costs are known, or `INVALID`.
        chosen: Pieces of the chosen cover.
    """

    problem: CoverProblem
    chosen: tuple[int, ...]

    @classmethod
    def of(cls, problem: CoverProblem, pieces: Iterable[int]) -> Rivals | None:
        """The cheapest cover with some pieces as the chosen one; None if there is none.

        Args:
            problem: The problem.
            pieces: Disjoint ones; nodes that are in none are covered as cheaply as possible.
        """
        fixed = tuple(pieces)
        left = mask_of(range(problem.size)) & ~_union(problem, fixed)
        cover = _cheapest(problem, (*fixed, *_within(problem, left)))
        return cls(problem, cover.pieces) if cover is not None and {*fixed} <= {*cover.pieces} else None

    @cached_property
    def cost(self) -> float:
        """Seconds of the chosen cover."""
        return cost_of(self.problem, self.chosen)

    def with_piece(self, piece: int) -> float | None:
        """Seconds more of the cheapest cover that has a piece, and else differs only where it has to.

        Chosen pieces that the piece does not touch stay. None if there is no such cover.
        """
        mask = self.problem.pieces[piece].mask
        area = _union(self.problem, (one for one in self.chosen if self.problem.pieces[one].mask & mask))
        found = self._instead(area, [piece, *_within(self.problem, area & ~mask)])
        return None if found is None else found.cost

    def without_piece(self, piece: int) -> Cover | None:
        """The cheapest pieces for the nodes of a chosen piece, and the seconds that they cost more.

        All other chosen pieces stay. None if no other piece runs these nodes.
        """
        area = self.problem.pieces[piece].mask
        return self._instead(area, [one for one in _within(self.problem, area) if one != piece])

    def at_least(self) -> Mapping[int, float]:
        """For each usable piece, what every cover with it costs more, at least; below 0 if perhaps less.

        By the prices of a quick search: linear in the edges of all pieces, for each sweep.
        """
        search = CoverSearch(self.problem)
        found = search.find(_BOUND)
        if not isinstance(found, SearchResult):
            return {}
        lower = search.bound - self.cost
        return {piece: lower + seconds for piece, seconds in search.excess().items()}

    def _instead(self, area: int, allowed: Sequence[int]) -> Cover | None:
        """The cheapest of some pieces for an area made of chosen pieces, and what they cost more.

        Only the area and the pieces that exchange values with it are searched.
        """
        pieces = self.problem.pieces
        removed = [piece for piece in self.chosen if pieces[piece].mask & area]
        near = sorted({other for piece in removed for other in self._neighbours[piece]} - set(removed))
        nodes = area | _union(self.problem, near)
        part = _part(self.problem, nodes, (*removed, *near, *allowed))
        count = len(removed) + len(near)
        free = range(count, count + len(allowed))
        cover = _cheapest(part, (*range(len(removed), count), *free))
        if cover is None:
            return None
        new = tuple(sorted(allowed[piece - count] for piece in cover.pieces if piece >= count))
        whole = tuple(sorted((*(piece for piece in self.chosen if piece not in removed), *new)))
        if not faults_of(self.problem, whole):
            return Cover(new, cover.cost - cost_of(part, range(count)))
        # A circle that leads through other pieces: search the whole problem.
        stay = [piece for piece in self.chosen if piece not in removed]
        cover = _cheapest(self.problem, (*stay, *allowed))
        if cover is None:
            return None
        return Cover(tuple(piece for piece in cover.pieces if piece not in stay), cover.cost - self.cost)

    @cached_property
    def _neighbours(self) -> Mapping[int, frozenset[int]]:
        """For each chosen piece, those that it exchanges values with."""
        owner = {node: piece for piece in self.chosen for node in nodes_of(self.problem.pieces[piece].mask)}
        neighbours: dict[int, set[int]] = {piece: set() for piece in self.chosen}
        for node, values in enumerate(self.problem.operands):
            for value in values:
                if owner[value] != owner[node]:
                    neighbours[owner[node]].add(owner[value])
                    neighbours[owner[value]].add(owner[node])
        return {piece: frozenset(others) for piece, others in neighbours.items()}


def _union(problem: CoverProblem, pieces: Iterable[int]) -> int:
    mask = 0
    for piece in pieces:
        mask |= problem.pieces[piece].mask
    return mask


def _within(problem: CoverProblem, mask: int) -> list[int]:
    """Valid pieces that lie in a set of nodes."""
    pieces = enumerate(problem.pieces)
    return [index for index, piece in pieces if not piece.mask & ~mask and not piece.is_invalid]


def _part(problem: CoverProblem, nodes: int, pieces: Sequence[int]) -> CoverProblem:
    """The problem of some nodes, with some of the pieces that lie in them, in this order."""
    kept = tuple(nodes_of(nodes))
    number_of = {node: number for number, node in enumerate(kept)}

    def moved(mask: int) -> int:
        return sum(1 << number_of[node] for node in nodes_of(mask & nodes))

    return CoverProblem(
        operands=tuple(
            tuple(number_of[value] for value in problem.operands[node] if value in number_of) for node in kept
        ),
        sizes=tuple(problem.sizes[node] for node in kept),
        results=moved(problem.results),
        pieces=tuple(
            replace(problem.pieces[piece], mask=moved(problem.pieces[piece].mask)) for piece in pieces
        ),
        dispatch=problem.dispatch,
        transition=problem.transition,
        parameters=tuple(
            Parameter(each.size, moved(each.consumers))
            for each in problem.parameters
            if each.consumers & nodes
        ),
        conflicts=problem.conflicts,
    )


def _cheapest(problem: CoverProblem, pieces: Iterable[int]) -> Cover | None:
    """The cheapest cover of some pieces."""
    numbers = sorted(set(pieces))
    part = replace(problem, pieces=tuple(problem.pieces[number] for number in numbers))
    result = CoverSearch(part).find(_QUICK)
    if not isinstance(result, SearchResult):
        return None
    return Cover(tuple(numbers[piece] for piece in result.best.pieces), result.best.cost)
