"""Search for nodes by name, number or operator, with their candidates."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from intarsia.report.explained_function import ExplainedRegion, FunctionRecord, NodeRecord, Tried
from intarsia.report.explanation import Explanation
from intarsia.support.errors import UsageError
from intarsia.support.number_ranges import parse_ranges
from intarsia.support.plain_record import to_plain

_SHOWN = 8
"""Maximum number of operators in the help of an error."""


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """A node, with the candidates that include it.

    Attributes:
        function: Name of its function.
        node: Record of the node.
        regions: Region that contains the node, if any.
        tried: Candidates that include the node, as listed in their regions.
        silent: Partition specs without a candidate that includes it.
    """

    function: str
    node: NodeRecord
    regions: tuple[ExplainedRegion, ...]
    tried: tuple[Tried, ...]
    silent: tuple[str, ...]

    @property
    def text(self) -> str:
        """Number, operator, and name of the node."""
        name = f", {self.node.name}" if self.node.name else ""
        function = "" if self.function == "main" else f" of @{self.function}"
        return f"{self.node.number}{function}: {self.node.operator}{name}"

    def to_json(self) -> dict[str, Any]:
        """Return the match as plain data."""
        regions = [
            {key: value for key, value in to_plain(region).items() if key != "tried"}
            for region in self.regions
        ]
        return {
            "function": self.function,
            **to_plain(self.node),
            "region": regions[0] if regions else None,
            "tried": to_plain(self.tried),
            "without_candidates": list(self.silent),
        }


def find_nodes(explanation: Explanation, text: str) -> tuple[NodeMatch, ...]:
    """Find nodes by name, else by number, else by operator.

    Raises:
        UsageError: There is no such node; the error lists similar names.
    """
    nodes = [(function, node) for function in explanation.functions for node in function.nodes]
    for key in (_name, _number, _operator):
        matching = [(function, node) for function, node in nodes if key(node) == text]
        if matching:
            return tuple(_match(function, node) for function, node in matching)
    raise UsageError(f"{explanation.model} has no node {text!r}", help=_similar(nodes, text))


def _name(node: NodeRecord) -> str:
    return node.name


def _number(node: NodeRecord) -> str:
    return str(node.number)


def _operator(node: NodeRecord) -> str:
    return node.operator


def _similar(nodes: list[tuple[FunctionRecord, NodeRecord]], text: str) -> str:
    names = list(dict.fromkeys(filter(None, (node.name for _, node in nodes))))
    operators = list(dict.fromkeys(node.operator for _, node in nodes))
    close = get_close_matches(text, [*names, *operators], n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if not nodes:
        return "the explanation lists no nodes"
    shown = ", ".join(operators[:_SHOWN])
    rest = f" and {len(operators) - _SHOWN} more" if len(operators) > _SHOWN else ""
    numbers = [node.number for _, node in nodes]
    return f"there are numbers from {min(numbers)} to {max(numbers)}, and the operators {shown}{rest}"


def _match(function: FunctionRecord, node: NodeRecord) -> NodeMatch:
    tried = tuple(
        candidate
        for region in function.regions
        for candidate in region.tried
        if node.number in parse_ranges(candidate.nodes)
    )
    specs = () if function.search is None else function.search.specs
    proposing = {candidate.spec for candidate in tried}
    return NodeMatch(
        function.name,
        node,
        tuple(region for region in function.regions if node.number in region.numbers),
        tried,
        tuple(spec for spec in specs if spec not in proposing),
    )
