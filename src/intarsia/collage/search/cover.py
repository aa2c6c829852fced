"""Covers, what they cost, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from intarsia.collage.search.cover_problem import CoverProblem
from intarsia.collage.search.node_sets import mask_of, nodes_of


@dataclass(frozen=True, slots=True)
class Cover:
    """Pieces that together run every node once: their indices, ascending, and the cost in seconds."""

    pieces: tuple[int, ...]
    cost: float


def cost_of(problem: CoverProblem, pieces: Sequence[int]) -> float:
    """The seconds of a cover by definition; pieces without a cost count with their bound."""
    owner = {node: index for index in pieces for node in nodes_of(problem.pieces[index].mask)}
    seconds, outside = problem.transition.seconds, problem.transition.outside
    terms = []
    for index in pieces:
        piece = problem.pieces[index]
        terms += [piece.floor, problem.dispatch[piece.spec]]
        consumed = {value for node in nodes_of(piece.mask) for value in problem.operands[node]}
        terms += [
            seconds(problem.pieces[owner[value]].spec, piece.spec, problem.sizes[value])
            for value in sorted(consumed)
            if owner[value] != index
        ]
        terms += [
            seconds(outside, piece.spec, parameter.size)
            for parameter in problem.parameters
            if parameter.consumers & piece.mask
        ]
        results = nodes_of(piece.mask & problem.results)
        terms += [seconds(piece.spec, outside, problem.sizes[node]) for node in results]
    return math.fsum(terms)


def faults_of(problem: CoverProblem, pieces: Sequence[int]) -> tuple[str, ...]:
    """What keeps these pieces from being a cover, one sentence each; empty if nothing does."""
    faults = [f"piece {index} is invalid" for index in pieces if problem.pieces[index].is_invalid]
    seen = 0
    for index in pieces:
        mask = problem.pieces[index].mask
        if seen & mask:
            faults.append(f"piece {index} overlaps others at {list(nodes_of(seen & mask))}")
        seen |= mask
    missing = mask_of(range(problem.size)) & ~seen
    if missing:
        faults.append(f"no piece covers {list(nodes_of(missing))}")
    specs = {problem.pieces[index].spec for index in pieces}
    faults += [
        f"specs {pair} are in conflict" for pair in sorted(problem.conflicts) if specs.issuperset(pair)
    ]
    return tuple(faults) if faults else _cycle_of(problem, pieces)


def _cycle_of(problem: CoverProblem, pieces: Sequence[int]) -> tuple[str, ...]:
    owner = {node: index for index in pieces for node in nodes_of(problem.pieces[index].mask)}
    needs: dict[int, set[int]] = {index: set() for index in pieces}
    for node, values in enumerate(problem.operands):
        needs[owner[node]].update(owner[value] for value in values if owner[value] != owner[node])
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return (f"the pieces {error.args[1]} need each other",)
    return ()
