"""Layered layout of a graph, by the package fast-sugiyama."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from intarsia.report.packages import report_package

Point: TypeAlias = tuple[float, float]

COLUMN: Final = 132.0
"""Distance of the centres of neighbours in a layer, in units of the picture: a box of 116 and a gap."""

ROW: Final = 54.0
"""Distance of layers: a box of 34 and a gap for edges."""

_SPACING: Final = 100
"""Distance of nodes and of layers in the units of the layout engine."""

_DUMMY: Final = 0.2
"""Width of an edge that passes a layer, as a share of that of a node."""


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Positions of nodes and courses of edges, inputs at the top.

    Attributes:
        nodes: Centre of each node.
        edges: Points of each edge from its first node to its second, the centres included.
        width: Width of the picture.
        height: Height of the picture.
    """

    nodes: Mapping[int, Point]
    edges: Mapping[tuple[int, int], tuple[Point, ...]]
    width: float
    height: float


def layered_layout(nodes: Sequence[int], edges: Sequence[tuple[int, int]]) -> GraphLayout:
    """Lay out an acyclic graph in layers.

    Args:
        nodes: Numbers of the nodes.
        edges: Pairs of the number of a node and of one that reads its value.

    Raises:
        UsageError: The package fast-sugiyama is not installed.
    """
    engine = report_package("fast_sugiyama")
    # Texts, since the engine numbers the bends of edges with numbers that nodes could have.
    layouts = (
        engine.from_edges(
            [(str(tail), str(head)) for tail, head in edges],
            vertex_spacing=_SPACING,
            dummy_vertices=True,
            dummy_size=_DUMMY,
            check_layout=False,
        )
        if edges
        else ()
    )
    centres: dict[int, Point] = {}
    courses: dict[tuple[int, int], tuple[Point, ...]] = {}
    right = 0.0
    for positions, _, height, bent_edges in layouts:
        points = {
            key: (right + COLUMN * (x / _SPACING + 0.5), ROW * ((height - y) / _SPACING + 0.5))
            for key, (x, y) in positions
        }
        left = min((x for x, _ in points.values()), default=0.0) - right - COLUMN / 2
        points = {key: (x - left, y) for key, (x, y) in points.items()}
        centres |= {int(key): point for key, point in points.items() if isinstance(key, str)}
        courses |= _courses(points, bent_edges or ())
        right = max((x for x, _ in points.values()), default=right) + COLUMN / 2
    for number in nodes:
        if number not in centres:
            centres[number] = (right + COLUMN / 2, ROW / 2)
            right += COLUMN
    lowest = max((y for _, y in centres.values()), default=0.0)
    return GraphLayout(centres, courses, right, lowest + ROW / 2)


def _courses(
    points: Mapping[str | int, Point], bent_edges: Sequence[tuple[str | int, str | int]]
) -> dict[tuple[int, int], tuple[Point, ...]]:
    """Join the pieces of each edge at its bends."""
    following: defaultdict[str | int, list[str | int]] = defaultdict(list)
    for tail, head in bent_edges:
        following[tail].append(head)
    courses = {}
    for tail, heads in following.items():
        if not isinstance(tail, str):
            continue
        for head in heads:
            course, current = [points[tail]], head
            while not isinstance(current, str):  # a bend has one successor
                course.append(points[current])
                current = following[current][0]
            courses[int(tail), int(current)] = (*course, points[current])
    return courses
