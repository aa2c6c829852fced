"""Layered layouts of graphs."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from intarsia.report.graph_layout import COLUMN, ROW, GraphLayout, layered_layout


def random_edges(seed: int, size: int) -> list[tuple[int, int]]:
    """Edges from numbers to larger ones; numbers have gaps, as those of programs do."""
    rng = random.Random(seed)
    numbers = sorted(rng.sample(range(4 * size), size))
    return sorted({tuple(sorted(rng.sample(numbers, 2))) for _ in range(2 * size)})  # type: ignore[misc]  # pairs


def laid_out(edges: list[tuple[int, int]], *more: int) -> GraphLayout:
    return layered_layout(sorted({number for edge in edges for number in edge} | set(more)), edges)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_read_is_above(seed: int) -> None:
    edges = random_edges(seed, 40)
    layout = laid_out(edges)
    for tail, head in edges:
        assert layout.nodes[head][1] - layout.nodes[tail][1] >= ROW - 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_boxes_do_not_overlap(seed: int) -> None:
    layout = laid_out(random_edges(seed, 40), 1_001, 1_002)
    for (x, y), (other_x, other_y) in combinations(layout.nodes.values(), 2):
        assert abs(x - other_x) > COLUMN - 2 or abs(y - other_y) > ROW - 2


@pytest.mark.parametrize("seed", range(5))
def test_every_edge_has_a_course_downwards(seed: int) -> None:
    edges = random_edges(seed, 40)
    layout = laid_out(edges)
    assert sorted(layout.edges) == edges
    for (tail, head), course in layout.edges.items():
        assert (course[0], course[-1]) == (layout.nodes[tail], layout.nodes[head])
        heights = [y for _, y in course]
        assert heights == sorted(heights)


def test_everything_is_inside_of_the_picture() -> None:
    layout = laid_out([(1, 2), (1, 3), (3, 4), (10, 11)], 20)
    assert sorted(layout.nodes) == [1, 2, 3, 4, 10, 11, 20]
    for x, y in layout.nodes.values():
        assert COLUMN / 2 - 1e-6 <= x <= layout.width - COLUMN / 2 + 1e-6
        assert ROW / 2 - 1e-6 <= y <= layout.height - ROW / 2 + 1e-6


def test_nodes_without_edges() -> None:
    assert laid_out([], 4, 7).nodes == {4: (COLUMN / 2, ROW / 2), 7: (1.5 * COLUMN, ROW / 2)}
