import math

import pytest

from intarsia.autoschedule.population.factorizations import divisors, factorizations, rounded_extents


@pytest.mark.parametrize(
    ("number", "expected"),
    [(1, (1,)), (12, (1, 2, 3, 4, 6, 12)), (13, (1, 13)), (16, (1, 2, 4, 8, 16))],
)
def test_divisors_ascend(number: int, expected: tuple[int, ...]) -> None:
    assert divisors(number) == expected


def test_lists_of_lengths() -> None:
    assert factorizations(4, 1, 64) == ((1,), (2,), (4,))
    assert factorizations(4, 2, 64) == ((1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (4, 1))
    assert factorizations(6, 2, 2) == ((1, 1), (1, 2), (2, 1), (3, 1), (3, 2), (6, 1))
    assert factorizations(1009, 3, 64) == ((1, 1, 1), (1, 1009, 1), (1009, 1, 1))


def test_512_has_a_list_of_220_triples_and_fewer_with_a_limit() -> None:
    """2 to the power of 9 in four places: as many as there are ways to choose 3 of 12."""
    assert len(factorizations(512, 3, 512)) == math.comb(12, 3)
    found = factorizations(512, 3, 64)
    assert len(found) == math.comb(12, 3) - 10
    assert all(512 % math.prod(lengths) == 0 and lengths[-1] <= 64 for lengths in found)


def test_extents_with_few_divisors_are_rounded_up_a_little() -> None:
    assert rounded_extents(1009) == (1012, 1016, 1024)
    assert rounded_extents(15) == (16,)
    assert rounded_extents(17) == ()
    assert rounded_extents(62) == (64,)
    assert rounded_extents(16) == ()
