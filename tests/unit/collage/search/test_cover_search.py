from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cover_problems import Operands, inception, network_problem, plain_problem, residual_chain

from intarsia.collage.search import (
    INVALID,
    CoverProblem,
    CoverSearch,
    Infeasible,
    Piece,
    SearchOptions,
    SearchResult,
    Transition,
    faults_of,
    search,
)

pytestmark = pytest.mark.quick_tests(14, also=["test_conflicts_without_a_way_out"])

CHAIN = ((), (0,), (1,))


def found(problem: CoverProblem, options: SearchOptions | None = None) -> SearchResult:
    result = search(problem, options)
    assert isinstance(result, SearchResult)
    return result


def singles(size: int, spec: int, cost: float) -> list[Piece]:
    return [Piece(1 << node, spec, cost) for node in range(size)]


def test_a_cheap_large_piece_beats_its_parts() -> None:
    problem = plain_problem(CHAIN, [*singles(3, 0, 1.0), Piece(0b110, 1, 1.5)])
    assert found(problem).best.pieces == (0, 3)
    assert found(problem).best.cost == 2.5
    assert found(problem).is_exact
    assert found(problem).gap == 0


def test_dispatch_counts_per_piece() -> None:
    problem = plain_problem(CHAIN, [*singles(3, 0, 1.0), Piece(0b111, 0, 3.5)], dispatch=(0.3,))
    assert found(problem).best.pieces == (3,)


def test_crossings_keep_a_cheaper_spec_out() -> None:
    pieces = [*singles(3, 0, 2.0), Piece(0b010, 1, 1.0)]
    assert found(plain_problem(CHAIN, pieces)).best.pieces == (0, 2, 3)
    dear = Transition.of([[0, 0.6, 0], [0.6, 0, 0], [0, 0, 0]], [[0.0] * 3] * 3)
    assert found(plain_problem(CHAIN, pieces, transition=dear)).best.pieces == (0, 1, 2)


def test_crossings_within_a_spec_count_as_the_matrix_says() -> None:
    pieces = [*singles(3, 0, 1.0), Piece(0b011, 0, 2.5)]
    assert found(plain_problem(CHAIN, pieces)).best.pieces == (0, 1, 2)
    within = Transition.of([[1.0, 0], [0, 0]], [[0.0] * 2] * 2)
    assert found(plain_problem(CHAIN, pieces, transition=within)).best.pieces == (2, 3)


def test_values_that_wait_for_their_producer_are_paid() -> None:
    # {0, 2} is placed first and waits for 1, whose cheaper spec costs more to cross
    operands: Operands = ((), (), (0, 1))
    pieces = [Piece(0b101, 0, 1.0), Piece(0b010, 1, 1.0), Piece(0b010, 0, 2.0)]
    crossing = Transition.of([[0, 0, 0], [5, 0, 0], [0, 0, 0]], [[0.0] * 3] * 3)
    assert found(plain_problem(operands, pieces)).best.pieces == (0, 1)
    assert found(plain_problem(operands, pieces, transition=crossing)).best.pieces == (0, 2)


def test_pieces_that_need_each_other_are_not_combined() -> None:
    operands: Operands = ((), (), (0,), (1,))
    pieces = [Piece(0b1001, 0, 0.1), Piece(0b0110, 0, 0.1), *singles(4, 0, 1.0)]
    result = found(plain_problem(operands, pieces), SearchOptions(covers=3))
    assert [cover.cost for cover in result.covers] == pytest.approx([2.1, 2.1, 4.0])


def test_conflicting_specs_are_not_combined() -> None:
    pieces = [*singles(3, 0, 2.0), *singles(3, 1, 2.1), Piece(0b001, 1, 0.1), Piece(0b100, 0, 0.1)]
    problem = plain_problem(CHAIN, pieces)
    assert found(problem).best.cost == pytest.approx(2.2)
    apart = replace(problem, conflicts=frozenset({(1, 0)}))
    assert found(apart).best.pieces == (0, 1, 7)


def test_invalid_pieces_are_never_used() -> None:
    problem = plain_problem(CHAIN, [*singles(3, 0, 1.0), Piece(0b111, 0, INVALID)])
    assert found(problem).best.pieces == (0, 1, 2)


def test_a_piece_whose_input_nothing_produces_is_never_used() -> None:
    # piece {2} needs the value of 1, but every piece with 1 contains 2
    problem = plain_problem(CHAIN, [Piece(0b001, 0, 1.0), Piece(0b110, 0, 9.0), Piece(0b100, 0, 0.0)])
    assert found(problem).best.pieces == (0, 1)


def test_free_covers_are_found() -> None:
    result = found(plain_problem(CHAIN, singles(3, 0, 0.0)))
    assert result.best.cost == 0
    assert result.gap == 0
    assert result.is_exact


def test_ties_are_decided_alike_each_time() -> None:
    pieces = [Piece(mask, spec, 1.0) for spec in range(3) for mask in (0b001, 0b010, 0b100)]
    problem = plain_problem(CHAIN, pieces)
    first = found(problem, SearchOptions(covers=10))
    assert len(first.covers) == 10
    assert first == found(problem, SearchOptions(covers=10))


def test_fewer_covers_than_wanted_are_all_there_are() -> None:
    result = found(plain_problem(CHAIN, [*singles(3, 0, 1.0), Piece(0b11, 0, 1.0)]), SearchOptions(covers=5))
    assert [cover.pieces for cover in result.covers] == [(2, 3), (0, 1, 2)]
    assert result.is_exact


def test_no_nodes_need_no_pieces() -> None:
    empty = CoverProblem((), (), 0, (), (), Transition.free(0))
    assert found(empty).best.pieces == ()


def test_pieces_that_are_not_convex_are_refused() -> None:
    with pytest.raises(ValueError, match="not convex"):
        search(plain_problem(CHAIN, [Piece(0b101, 0, 1.0), Piece(0b010, 0, 1.0)]))


def test_learnt_costs_count_from_then_on() -> None:
    pieces = [Piece(0b111, 0, None, 1.0), *singles(3, 0, 1.0)]
    again = CoverSearch(plain_problem(CHAIN, pieces))
    first = again.find(SearchOptions())
    again.learn({0: 2.5})
    second = again.find(SearchOptions())
    again.learn({0: INVALID})
    third = again.find(SearchOptions())
    results = [result.best for result in (first, second, third) if isinstance(result, SearchResult)]
    assert [(best.pieces, best.cost) for best in results] == [((0,), 1.0), ((0,), 2.5), ((1, 2, 3), 3.0)]


class TestInfeasible:
    def test_nodes_without_candidates_are_named(self) -> None:
        result = search(plain_problem(CHAIN, [Piece(0b001, 0, 1.0)]))
        assert result == Infeasible(uncovered=(1, 2))
        assert str(result) == "no cover: no candidate contains nodes 1, 2"

    def test_nodes_with_invalid_candidates_only_are_named(self) -> None:
        pieces = [Piece(0b011, 0, 1.0), Piece(0b100, 0, INVALID), Piece(0b111, 0, INVALID)]
        result = search(plain_problem(CHAIN, pieces))
        assert result == Infeasible(only_invalid=(2,))
        assert str(result) == "no cover: only invalid candidates contain node 2"

    def test_nodes_whose_inputs_nothing_produces_are_named(self) -> None:
        result = search(plain_problem(((), (0,)), [Piece(0b11, 0, INVALID), Piece(0b10, 0, 1.0)]))
        assert result == Infeasible(only_invalid=(0,), cut_off=(1,))

    def test_candidates_that_do_not_fit_together(self) -> None:
        result = search(plain_problem(((), (), ()), [Piece(0b011, 0, 1.0), Piece(0b110, 0, 1.0)]))
        assert result == Infeasible(stuck_at=2)

    def test_conflicts_without_a_way_out(self) -> None:
        pieces = [Piece(0b001, 0, 1.0), Piece(0b010, 1, 1.0), Piece(0b100, 0, 1.0)]
        result = search(plain_problem(CHAIN, pieces, conflicts=frozenset({(0, 1)})))
        assert result == Infeasible(stuck_at=1)
        assert str(result) == "no cover: the candidates do not fit together at node 1"

    def test_candidates_made_invalid_later(self) -> None:
        again = CoverSearch(plain_problem(CHAIN, singles(3, 0, 1.0)))
        again.learn({1: INVALID})
        assert again.find(SearchOptions()) == Infeasible(only_invalid=(1,))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("operands", [residual_chain(300), inception(150)])
def test_networks_are_solved_exactly(operands: Operands) -> None:
    problem = network_problem(operands)
    result = found(problem)
    assert result.is_exact
    assert faults_of(problem, result.best.pieces) == ()
    narrow = found(problem, SearchOptions(width=4, budget=0, sweeps=3))
    assert narrow.lower_bound <= result.best.cost <= narrow.best.cost
    assert narrow.gap < 0.1


@pytest.mark.parametrize(
    "changes", [{"covers": 0}, {"width": 0}, {"growth": 1}, {"budget": -1}, {"sweeps": 0}]
)
def test_options_that_cannot_be_meant_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least"):
        SearchOptions(**changes)
