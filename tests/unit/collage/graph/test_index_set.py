"""Sets of indices; that they are sets is a property (test_collage_sub_graph)."""

from __future__ import annotations

import pytest

from intarsia.collage.graph.index_set import IndexSet


def of(*indices: int, size: int = 10) -> IndexSet:
    return IndexSet.of(size, indices)


@pytest.mark.parametrize(
    ("indices", "text"),
    [
        ((), "{}"),
        ((0,), "{0}"),
        ((0, 3, 4, 5), "{0,3..5}"),
        ((8, 9), "{8..9}"),
        (tuple(range(10)), "{0..9}"),
        ((1, 3, 5), "{1,3,5}"),
    ],
)
def test_prints_ranges(indices: tuple[int, ...], text: str) -> None:
    assert str(of(*indices)) == repr(of(*indices)) == text


def test_walks_inside_and_outside() -> None:
    found = of(2, 3, 7)
    assert list(found) == [2, 3, 7]
    assert (found.first_inside_index(), found.last_inside_index()) == (2, 7)
    assert [found.next_index(index) for index in (-1, 2, 3, 7)] == [2, 3, 7, 10]
    assert (found.first_outside_index(), of(0, 1, 3).first_outside_index()) == (0, 2)


def test_the_empty_and_the_full_set() -> None:
    empty, full = IndexSet.of(3), IndexSet.full(3)
    assert (empty.first_inside_index(), empty.last_inside_index(), empty.first_outside_index()) == (3, -1, 0)
    assert full.first_outside_index() == 3
    assert empty.is_empty()
    assert not empty
    assert full
    assert IndexSet.of(0) == IndexSet.full(0)
    assert list(IndexSet.full(0)) == []


def test_membership() -> None:
    found = of(2, 9)
    assert [index in found for index in (-1, 2, 3, 9, 10)] == [False, True, False, True, False]
    assert found.added(3) == of(2, 3, 9)
    assert found.added(2) == found


@pytest.mark.parametrize(
    ("indices", "problem"),
    [
        ((1, 1), "index 1 is given twice"),
        ((10,), "index 10 is out of range for a set of size 10"),
        ((-1,), "index -1 is out of range for a set of size 10"),
    ],
)
def test_refuses_what_is_no_set(indices: tuple[int, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        of(*indices)


def test_refuses_bits_out_of_range() -> None:
    with pytest.raises(ValueError, match="bits 0x8 are out of range for a set of size 3"):
        IndexSet(8, 3)
    with pytest.raises(ValueError, match="out of range"):
        of(1).added(10)


def test_refuses_sets_of_two_graphs() -> None:
    for operation in ("__or__", "__and__", "__sub__", "is_subset", "intersects", "__lt__"):
        with pytest.raises(ValueError, match="index sets of graphs of 10 and 3 nodes do not combine"):
            getattr(of(1), operation)(IndexSet.of(3))


def test_the_earlier_first_index_sorts_first() -> None:
    sets = [of(), of(9), of(2), of(2, 3), of(0, 9), of(0, 1)]
    assert sorted(sets) == [of(0, 1), of(0, 9), of(2, 3), of(2), of(9), of()]
    assert of(0) < of(1)
    assert of(0) <= of(0)
    assert of(0) >= of(0)
    assert of(1) > of(0)


def test_takes_new_indices() -> None:
    assert of(1, 4).subst(5, {1: 0, 4: 3, 7: 1}) == IndexSet.of(5, [0, 3])
    with pytest.raises(ValueError, match="index 4 has no new index"):
        of(1, 4).subst(5, {1: 0})
    with pytest.raises(ValueError, match="index 0 is given twice"):
        of(1, 4).subst(5, {1: 0, 4: 0})
    with pytest.raises(ValueError, match="index 9 is out of range"):
        of(1).subst(5, {1: 9})
