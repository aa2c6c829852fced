"""The map of a program's graph: positions and colours of nodes, and what is shown when one is selected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from intarsia.report.explained_function import ExplainedRegion, Fate, Tried
from intarsia.report.explanation import Explanation
from intarsia.report.graph_layout import GraphLayout, Point, layered_layout
from intarsia.report.outcome_text import fate_text, to_win_text, whole_to_win_text
from intarsia.report.run_records import GraphNode
from intarsia.report.toolchain_colours import toolchain_class
from intarsia.runtime.profile import Profile, ProfileRow
from intarsia.support.number_ranges import parse_ranges
from intarsia.support.units import NOTHING, duration_text, interval_text

BOX: Final = (116.0, 34.0)
"""Width and height of a node's box."""

_OPERATOR: Final = 14
"""Maximum number of characters of the first line of a box."""

_NAME: Final = 17
"""Maximum number of characters of the second line, which has smaller letters."""

MOST_DRAWN: Final = 4000
"""Maximum number of nodes of a map: a page of a larger one takes seconds to draw, and shows nothing."""


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node of the map.

    Attributes:
        number: Stable number.
        x: Left edge of the box.
        y: Upper edge of the box.
        operator: First line of the box.
        name: Second line of the box.
        title: Full text, for the pointer and for screen readers.
        colour: Class of CSS.
        heat: Share of the kernels' time, from 0 to 1; None if it is not known.
    """

    number: int
    x: float
    y: float
    operator: str
    name: str
    title: str
    colour: str
    heat: float | None


@dataclass(frozen=True, slots=True)
class GraphMap:
    """The map of @main.

    Attributes:
        nodes: Drawn nodes.
        edges: Courses of edges as path data of SVG.
        width: Width of the picture.
        height: Height of the picture.
        legend: Toolchains with the number of their nodes and their class of CSS.
        details: Facts of nodes, regions, candidates and kernels as plain data, for the script of the page.
    """

    nodes: tuple[DrawnNode, ...]
    edges: tuple[str, ...]
    width: float
    height: float
    legend: tuple[tuple[str, int, str], ...]
    details: dict[str, Any]


_BEFORE_DECISIONS: Final = (
    "The winner starts with decisions on the program, which are listed under Decisions. Parts were searched "
    "in the program before them: this is the part of the mix that is the cheapest by its parts."
)


def graph_map(explanation: Explanation, profile: Profile | None) -> GraphMap | str:
    """Return the map of the program that was tuned, or a sentence on why there is none.

    Args:
        explanation: Records of the run.
        profile: Profile of the winner, if there is one.

    Raises:
        UsageError: The package of the layout is not installed.
    """
    graph = explanation.graph
    if not graph:
        return "The graph is not recorded in this explanation: tune the model again with this version."
    if len(graph) > MOST_DRAWN:
        return f"The graph has {len(graph)} nodes, more than the {MOST_DRAWN} that a map shows."
    edges = [(source, node.number) for node in graph for source in _sources(node)]
    layout = layered_layout([node.number for node in graph], edges)
    kernels = _kernels_by_node(graph, profile)
    return GraphMap(
        nodes=tuple(_drawn(node, layout, kernels.get(node.number), profile) for node in graph),
        edges=tuple(_path(course) for course in layout.edges.values()),
        width=layout.width,
        height=layout.height,
        legend=tuple(_legend(graph)),
        details=_details(explanation, kernels, profile),
    )


def _sources(node: GraphNode) -> tuple[int, ...]:
    return parse_ranges(node.inputs) if node.inputs else ()


def _drawn(
    node: GraphNode, layout: GraphLayout, rows: Sequence[int] | None, profile: Profile | None
) -> DrawnNode:
    x, y = layout.nodes[node.number]
    operator = node.operator or "input"
    toolchain = node.toolchain or ("" if not node.operator else "no toolchain recorded")
    title = ", ".join(filter(None, (f"{node.number}: {operator}", node.name, toolchain)))
    heat = None
    if profile is not None and rows is not None and profile.kernel_seconds:
        heat = sum(profile.rows[row].seconds for row in rows) / profile.kernel_seconds
    return DrawnNode(
        node.number,
        round(x - BOX[0] / 2, 1),
        round(y - BOX[1] / 2, 1),
        _shortened(operator.rpartition("::")[2]),
        _shortened_left(node.name),
        title,
        toolchain_class(node.toolchain),
        heat,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _OPERATOR else f"{text[: _OPERATOR - 1]}…"


def _shortened_left(name: str) -> str:
    """Shorten a name from the left: names of layers differ at their ends."""
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"


def _path(course: Sequence[Point]) -> str:
    """Return a course as path data, from the lower edge of a box to the upper edge of the next one."""
    half = BOX[1] / 2
    (first_x, first_y), *middle, (last_x, last_y) = course
    points = [(first_x, first_y + half), *middle, (last_x, last_y - half)]
    text = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x, y), (next_x, next_y) in pairwise(points):
        if round(x) == round(next_x):
            text += f"V{next_y:.0f}"
        else:
            bend = (y + next_y) / 2
            text += f"C{x:.0f} {bend:.0f} {next_x:.0f} {bend:.0f} {next_x:.0f} {next_y:.0f}"
    return text


def _legend(graph: Sequence[GraphNode]) -> Iterator[tuple[str, int, str]]:
    operators = [node for node in graph if node.operator]
    for toolchain in sorted({node.toolchain for node in operators}):
        count = sum(node.toolchain == toolchain for node in operators)
        yield toolchain or "folded, or not recorded", count, toolchain_class(toolchain)


def _kernels_by_node(graph: Sequence[GraphNode], profile: Profile | None) -> dict[int, list[int]]:
    """Return the rows of a profile whose kernels compute a node, by the number of the node."""
    numbers: dict[str, list[int]] = {}
    for node in graph:
        if node.operator and node.name:
            numbers.setdefault(node.name, []).append(node.number)
    rows: dict[int, list[int]] = {}
    for position, row in enumerate(() if profile is None else profile.rows):
        for name in dict.fromkeys(source.name for source in row.kernel.nodes):
            for number in numbers.get(name, ()):
                rows.setdefault(number, []).append(position)
    return rows


def _details(
    explanation: Explanation, kernels: dict[int, list[int]], profile: Profile | None
) -> dict[str, Any]:
    regions, remarks = _numbered_regions(explanation), _remarks_by_node(explanation)
    return {
        "nodes": {
            str(node.number): [
                node.operator,
                node.name,
                node.toolchain,
                node.inputs,
                kernels.get(node.number, []),
                remarks.get(node.name, []) if node.operator else [],
            ]
            for node in explanation.graph
        },
        "remarks": [f"{item.pass_name}: {item.level}: {item.text}" for item in explanation.remarks],
        "regions": [_region(region) for region in regions],
        "kernels": [] if profile is None else [_kernel(row, profile) for row in profile.rows],
        "basis": _BEFORE_DECISIONS if _has_other_numbers(explanation) and regions else "",
        "whole": whole_to_win_text(explanation.contest),
        "gap": _gap(explanation, regions),
    }


def _remarks_by_node(explanation: Explanation) -> dict[str, list[int]]:
    """Return the positions of the remarks about each node, by its name."""
    positions: dict[str, list[int]] = {}
    for position, remark in enumerate(explanation.remarks):
        for name in dict.fromkeys(subject.node for subject in remark.subjects if subject.node):
            positions.setdefault(name, []).append(position)
    return positions


def _numbered_regions(explanation: Explanation) -> list[ExplainedRegion]:
    """Return the regions of @main whose nodes have the numbers of the graph.

    Those of a winner after decisions have the numbers of another program.
    """
    functions = explanation.undecided if _has_other_numbers(explanation) else explanation.functions
    return [region for item in functions if item.name == "main" for region in item.regions]


def _has_other_numbers(explanation: Explanation) -> bool:
    """Whether the winner's program has other nodes than the graph, because of its decisions."""
    nodes = [node for item in explanation.functions if item.name == "main" for node in item.nodes]
    operators = {node.number: node.operator for node in nodes}
    drawn = (node for node in explanation.graph if node.operator)
    return bool(explanation.decisions) and any(operators.get(node.number) != node.operator for node in drawn)


def _gap(explanation: Explanation, regions: Sequence[ExplainedRegion]) -> str:
    """Return why there are no candidates; "" if there are some."""
    if _has_other_numbers(explanation) and not regions:
        return (
            "The winner starts with decisions on the program, after which parts were not searched: "
            "the candidates of the passes are listed under Decisions."
        )
    if not any(region.tried for region in regions):
        return "No parts were searched: only whole models were compared."
    return ""


def _region(region: ExplainedRegion) -> dict[str, Any]:
    rival = region.rival
    return {
        "nodes": region.nodes,
        "toolchain": region.toolchain,
        "label": region.label,
        "alone": _optional(region.predicted),
        "measured": _optional(region.measured),
        "rival": ""
        if rival is None
        else f"{', '.join(f'{part.spec} ({part.label})' for part in rival.parts)}: {to_win_text(rival)}",
        "tried": [_candidate(tried) for tried in region.tried if tried.fate is not Fate.NOT_TRIED],
        "untried": sum(tried.fate is Fate.NOT_TRIED for tried in region.tried),
        "left_out": region.left_out,
    }


def _candidate(tried: Tried) -> list[str]:
    interval = "" if tried.low is None or tried.high is None else interval_text(tried.low, tried.high)
    return [tried.spec, tried.label, tried.nodes, _optional(tried.seconds), interval, fate_text(tried)]


def _kernel(row: ProfileRow, profile: Profile) -> list[str]:
    share = row.seconds / profile.seconds if profile.seconds else 0.0
    roof = NOTHING if not row.bound or not row.seconds else f"{min(1.0, row.bound / row.seconds):.0%}"
    return [row.kernel.name, row.toolchain, duration_text(row.seconds), f"{share:.1%}", roof]


def _optional(seconds: float | None) -> str:
    return NOTHING if seconds is None else duration_text(seconds)
