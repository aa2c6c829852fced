"""All covers of a small problem, from the definition alone: shares no code with the search."""

from __future__ import annotations

from collections.abc import Iterator

from intarsia.collage.search.cover import Cover
from intarsia.collage.search.cover_problem import CoverProblem


def all_covers(problem: CoverProblem) -> list[Cover]:
    """Every cover, cheapest first, ties by the indices of the pieces.

    Exponential: for about ten nodes. Pieces without a cost count with their bound.
    """
    nodes = [
        frozenset(node for node in range(problem.size) if piece.mask >> node & 1) for piece in problem.pieces
    ]
    covers = [
        Cover(chosen, _cost(problem, nodes, chosen))
        for chosen in _partitions(problem, nodes, (), frozenset(range(problem.size)))
        if _is_acyclic(problem, nodes, chosen) and not _has_conflict(problem, chosen)
    ]
    return sorted(covers, key=lambda cover: (cover.cost, cover.pieces))


def _partitions(
    problem: CoverProblem, nodes: list[frozenset[int]], chosen: tuple[int, ...], left: frozenset[int]
) -> Iterator[tuple[int, ...]]:
    """All sets of valid pieces that contain every node exactly once."""
    if not left:
        yield tuple(sorted(chosen))
        return
    node = min(left)
    for index, inside in enumerate(nodes):
        if node in inside and inside <= left and problem.pieces[index].cost != float("inf"):
            yield from _partitions(problem, nodes, (*chosen, index), left - inside)


def _is_acyclic(problem: CoverProblem, nodes: list[frozenset[int]], chosen: tuple[int, ...]) -> bool:
    """Remove pieces that need no other remaining piece until none is left, or none can be removed."""
    remaining = set(chosen)
    while remaining:
        ready = {
            index
            for index in remaining
            if not any(
                value in nodes[other]
                for node in nodes[index]
                for value in problem.operands[node]
                for other in remaining - {index}
            )
        }
        if not ready:
            return False
        remaining -= ready
    return True


def _has_conflict(problem: CoverProblem, chosen: tuple[int, ...]) -> bool:
    specs = {problem.pieces[index].spec for index in chosen}
    return any(one in specs and other in specs for one, other in problem.conflicts)


def _cost(problem: CoverProblem, nodes: list[frozenset[int]], chosen: tuple[int, ...]) -> float:
    transition, outside = problem.transition, problem.specs

    def crossing(producer: int, consumer: int, size: float) -> float:
        return transition.fixed[producer][consumer] + transition.per_byte[producer][consumer] * size

    total = 0.0
    for index in chosen:
        piece, inside = problem.pieces[index], nodes[index]
        total += piece.bound if piece.cost is None else piece.cost
        total += problem.dispatch[piece.spec]
        for value in range(problem.size):
            is_read = any(value in problem.operands[node] for node in inside)
            if is_read and value not in inside:
                producer = next(other for other in chosen if value in nodes[other])
                total += crossing(problem.pieces[producer].spec, piece.spec, problem.sizes[value])
            if value in inside and problem.results >> value & 1:
                total += crossing(piece.spec, outside, problem.sizes[value])
        for parameter in problem.parameters:
            if any(parameter.consumers >> node & 1 for node in inside):
                total += crossing(outside, piece.spec, parameter.size)
    return total
