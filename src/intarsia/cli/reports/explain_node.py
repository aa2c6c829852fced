"""Finding the nodes that a user means, with all that was tried on them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from intarsia.driver.explain.explained_function import ExplainedRegion, FunctionRecord, NodeRecord, Tried
from intarsia.driver.explain.explanation import Explanation
from intarsia.support.errors import UsageError
from intarsia.support.number_ranges import parse_ranges
from intarsia.support.plain_record import to_plain

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """A node, and what was tried on it.

    Attributes:
        function: Name of its function.
        node: The node.
        regions: The region that holds it.
        tried: Candidates that hold it, as they are listed in their regions.
        silent: Partition specs that propose nothing with it.
    """

    function: str
    node: NodeRecord
    regions: tuple[ExplainedRegion, ...]
    tried: tuple[Tried, ...]
    silent: tuple[str, ...]

    @property
    def text(self) -> str:
        """For people: number, operator, and name."""
        name = f", {self.node.name}" if self.node.name else ""
        function = "" if self.function == "main" else f" of @{self.function}"
        return f"{self.node.number}{function}: {self.node.operator}{name}"

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        own = [
            {key: value for key, value in to_plain(each).items() if key != "tried"} for each in self.regions
        ]
        return {
            "function": self.function,
            **to_plain(self.node),
            "region": own[0] if own else None,
            "tried": to_plain(self.tried),
            "without_candidates": list(self.silent),
        }


def find_nodes(explanation: Explanation, text: str) -> tuple[NodeMatch, ...]:
    """The nodes that a text means: by name, else by number, else by operator.

    Raises:
        UsageError: There is none; the error names similar ones.
    """
    nodes = [(function, node) for function in explanation.functions for node in function.nodes]
    for key in (_name, _number, _operator):
        found = [(function, node) for function, node in nodes if key(node) == text]
        if found:
            return tuple(_match(function, node) for function, node in found)
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
        return "nothing is known of its nodes"
    shown = ", ".join(operators[:_SHOWN])
    rest = f" and {len(operators) - _SHOWN} more" if len(operators) > _SHOWN else ""
    numbers = [node.number for _, node in nodes]
    return f"there are numbers from {min(numbers)} to {max(numbers)}, and the operators {shown}{rest}"


def _match(function: FunctionRecord, node: NodeRecord) -> NodeMatch:
    tried = tuple(
        each
        for region in function.regions
        for each in region.tried
        if node.number in parse_ranges(each.nodes)
    )
    specs = () if function.search is None else function.search.specs
    heard = {each.spec for each in tried}
    return NodeMatch(
        function.name,
        node,
        tuple(region for region in function.regions if node.number in region.numbers),
        tried,
        tuple(spec for spec in specs if spec not in heard),
    )
