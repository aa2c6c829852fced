from __future__ import annotations

import random

from intarsia.collage.search.node_sets import RangeUnion, first_outside, mask_of, nodes_of, runs_of


def test_nodes_and_masks_are_inverse() -> None:
    assert list(nodes_of(0b101101)) == [0, 2, 3, 5]
    assert mask_of([5, 0, 3, 2]) == 0b101101
    assert list(nodes_of(0)) == []


def test_first_outside() -> None:
    assert [first_outside(mask) for mask in (0, 0b1, 0b10, 0b1011, 0b1111)] == [0, 1, 0, 2, 4]


def test_runs() -> None:
    assert runs_of(0b1101110) == ((1, 4), (5, 7))
    assert runs_of(0) == ()
    assert runs_of(1 << 5000 | 1) == ((0, 1), (5000, 5001))


def test_range_unions_equal_the_union_of_the_members() -> None:
    rng = random.Random(0)
    sets = [rng.randrange(1 << 20) & rng.randrange(1 << 20) for _ in range(37)]
    union = RangeUnion(sets)
    for start in range(37):
        for end in range(start + 1, 38):
            expected = 0
            for member in sets[start:end]:
                expected |= member
            assert union.over([(start, end)]) == expected
    assert union.over([(0, 2), (30, 31)]) == sets[0] | sets[1] | sets[30]
    assert union.over([]) == 0
