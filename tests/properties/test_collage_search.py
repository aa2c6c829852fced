"""The search against brute force over all covers, on random graphs of up to ten nodes with three specs."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.brute_force_covers import all_covers
from tests.cover_problems import convex_hull, plain_problem, random_problem

from intarsia.collage.search import (
    INVALID,
    CoverProblem,
    Infeasible,
    Measure,
    Piece,
    SearchOptions,
    SearchResult,
    faults_of,
    lazy_search,
    search,
)
from intarsia.collage.search.footprint import Topology
from intarsia.collage.search.node_sets import mask_of, nodes_of
from intarsia.collage.search.piece_table import PieceTable
from intarsia.collage.search.precedence import Pairs, Precedence

pytestmark = pytest.mark.quick_tests(5)

WANTED = 6


def blocks(count: int, quick: int) -> list[object]:
    """Return the numbers of blocks of seeds, of which all but the first few are left to `make slow`."""
    return [pytest.param(n, marks=[pytest.mark.slow] * (n >= quick)) for n in range(count)]


def problem_of(seed: int) -> CoverProblem:
    """Every second one has small whole costs, so that many covers tie."""
    return random_problem(seed, whole_costs=seed % 2 == 0)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("block", blocks(20, quick=5))
def test_optimum_equals_brute_force(block: int) -> None:
    for seed in range(25 * block, 25 * (block + 1)):
        problem = problem_of(seed)
        expected = [cover.cost for cover in all_covers(problem)]
        result = search(problem)
        if not expected:
            assert isinstance(result, Infeasible)
            assert result.is_proven
            continue
        assert isinstance(result, SearchResult)
        assert result.is_exact
        assert result.best.cost == pytest.approx(expected[0], rel=1e-9, abs=1e-12)
        assert faults_of(problem, result.best.pieces) == ()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("block", blocks(10, quick=3))
def test_best_covers_equal_brute_force(block: int) -> None:
    for seed in range(1000 + 20 * block, 1020 + 20 * block):
        problem = problem_of(seed)
        expected = [cover.cost for cover in all_covers(problem)][:WANTED]
        result = search(problem, SearchOptions(covers=WANTED, width=4))
        covers = result.covers if isinstance(result, SearchResult) else ()
        assert [cover.cost for cover in covers] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert len({cover.pieces for cover in covers}) == len(covers)
        for cover in covers:
            assert faults_of(problem, cover.pieces) == ()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("block", blocks(10, quick=3))
def test_gap_of_a_narrow_search_is_honest(block: int) -> None:
    for seed in range(2000 + 20 * block, 2020 + 20 * block):
        problem = problem_of(seed)
        expected = min((cover.cost for cover in all_covers(problem)), default=math.inf)
        result = search(problem, SearchOptions(width=1, budget=0, sweeps=1))
        if isinstance(result, Infeasible):
            assert not result.is_proven or math.isinf(expected)
            continue
        assert result.lower_bound <= expected + 1e-9
        assert expected <= result.best.cost + 1e-9
        assert not result.is_exact or result.best.cost == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert faults_of(problem, result.best.pieces) == ()


def test_some_narrow_searches_miss_the_optimum() -> None:
    """Else the test above would show nothing."""
    options = SearchOptions(width=1, budget=0, sweeps=1)
    results = [search(problem_of(seed), options) for seed in range(2000, 2200)]
    assert any(isinstance(result, SearchResult) and result.gap > 0.01 for result in results)


@pytest.mark.parametrize("block", blocks(5, quick=2))
def test_lazy_search_finds_the_same_optimum(block: int) -> None:
    measured = candidates = 0
    for seed in range(3000 + 20 * block, 3020 + 20 * block):
        problem = problem_of(seed)
        rng = random.Random(seed)
        costs = [piece.cost for piece in problem.pieces]
        unknown = [
            replace(piece, cost=None, bound=rng.uniform(0.5, 1) * (1.0 if piece.is_invalid else piece.floor))
            for piece in problem.pieces
        ]
        lazy = lazy_search(replace(problem, pieces=tuple(unknown)), _answers(costs))
        expected = search(problem)
        measured += len(lazy.costs)
        candidates += len(costs)
        assert isinstance(lazy.result, SearchResult) == isinstance(expected, SearchResult)
        if isinstance(lazy.result, SearchResult) and isinstance(expected, SearchResult):
            assert lazy.result.best.cost == pytest.approx(expected.best.cost, rel=1e-9, abs=1e-12)
            assert lazy.result.is_exact
            assert all(lazy.costs[piece] == costs[piece] for piece in lazy.result.best.pieces)
    assert measured < 0.9 * candidates


def _answers(costs: Sequence[float | None]) -> Measure:
    def measure(pieces: Sequence[int]) -> Mapping[int, float | None]:
        return {piece: None if costs[piece] == INVALID else costs[piece] for piece in pieces}

    return measure


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("block", blocks(10, quick=3))
def test_cycles_are_refused_at_once_and_nothing_else(block: int) -> None:
    """Pieces of many exits, placed by their smallest node; the contracted graph is checked after each."""
    refused = 0
    for seed in range(100 * block, 100 * (block + 1)):
        rng = random.Random(seed)
        problem = _scattered(rng)
        order = Precedence(PieceTable(problem))
        uncovered, placed, pairs = (1 << problem.size) - 1, list[int](), Pairs()
        while uncovered:
            piece = rng.choice(_fitting(problem, uncovered))
            uncovered ^= problem.pieces[piece].mask
            placed.append(piece)
            extended = order.extended(pairs, piece, uncovered)
            assert (extended is None) == bool(faults_of(problem, (*placed, *nodes_of(uncovered))))
            if extended is None:
                refused += 1
                break
            pairs = extended
    assert refused > 20


def _scattered(rng: random.Random) -> CoverProblem:
    """Sparse edges, and pieces of two to four nodes from anywhere; piece i < n is node i alone."""
    size = 14
    operands = tuple(
        tuple(sorted(rng.sample(range(node), min(node, rng.choice((0, 1, 1, 2)))))) for node in range(size)
    )
    singles = [Piece(1 << node, 0, 1.0) for node in range(size)]
    topology = Topology(plain_problem(operands, singles))
    picks = [rng.sample(range(size), rng.randint(2, 4)) for _ in range(60)]
    hulls = [convex_hull(topology, mask_of(nodes)) for nodes in picks]
    return plain_problem(operands, singles + [Piece(mask, 0, 1.0) for mask in hulls if mask.bit_count() < 5])


def _fitting(problem: CoverProblem, uncovered: int) -> list[int]:
    """The largest kinds of pieces that can be placed at the first uncovered node."""
    first = uncovered & -uncovered
    fitting = [
        number
        for number, piece in enumerate(problem.pieces)
        if piece.mask & first and not piece.mask & ~uncovered
    ]
    return fitting[1:] or fitting
