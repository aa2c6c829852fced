"""Offsets in the arena: nothing that is alive together overlaps, and little is wasted."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from intarsia.native.graph.memory_plan import Lifetime, plan_memory

ALIGNMENT = 64


@st.composite
def random_lifetimes(draw: st.DrawFn) -> tuple[Lifetime, ...]:
    found = []
    for value in range(draw(st.integers(0, 12))):
        first = draw(st.integers(0, 9))
        last = draw(st.integers(first, 11))
        found.append(Lifetime(value, draw(st.integers(0, 400)), first, last))
    return tuple(found)


@given(random_lifetimes())
def test_values_alive_together_do_not_overlap(alive: tuple[Lifetime, ...]) -> None:
    offsets, size = plan_memory(alive, ALIGNMENT)
    assert set(offsets) == {each.value for each in alive}
    for each in alive:
        assert offsets[each.value] % ALIGNMENT == 0
        assert 0 <= offsets[each.value] <= offsets[each.value] + each.size <= size
    for one, other in combinations(alive, 2):
        if one.first <= other.last and other.first <= one.last and one.size and other.size:
            left, right = sorted((one, other), key=lambda each: offsets[each.value])
            assert offsets[left.value] + left.size <= offsets[right.value]


def test_a_chain_needs_two_places() -> None:
    alive = [Lifetime(place, 1000, place, place + 1) for place in range(20)]
    assert plan_memory(alive, ALIGNMENT)[1] == 2 * 1024


def test_the_smallest_gap_that_fits_is_taken() -> None:
    alive = [
        Lifetime(0, 256, 0, 0),
        Lifetime(1, 192, 0, 5),
        Lifetime(2, 128, 0, 0),
        Lifetime(3, 100, 0, 5),
        Lifetime(4, 60, 1, 1),
    ]
    offsets, size = plan_memory(alive, ALIGNMENT)
    assert [offsets[value] for value in range(4)] == [0, 256, 448, 576]
    assert offsets[4] == 448
    assert size == 704


def test_nothing_needs_nothing() -> None:
    assert plan_memory((), ALIGNMENT) == ({}, 0)
