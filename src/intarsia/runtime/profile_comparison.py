"""Two profiles of a model side by side, by the nodes of the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from intarsia.runtime.kernel_profiler import SourceNode
from intarsia.runtime.profile import Profile, ProfileRow


@dataclass(frozen=True, slots=True)
class ProfileSegment:
    """The smallest part of a model such that no kernel of either program reaches beyond it.

    Where one toolchain fuses several nodes, the other one's kernels of these nodes are in the same segment.

    Attributes:
        name: Name of the node with most of the work, and the number of the others; what the kernels do, if
            they compute no node.
        nodes: Nodes of the segment, in order of the model.
        seconds: Seconds of the segment in each profile.
        kernels: Names of its kernels in each profile.
    """

    name: str
    nodes: tuple[SourceNode, ...]
    seconds: tuple[float, float]
    kernels: tuple[tuple[str, ...], tuple[str, ...]]

    def to_json(self) -> dict[str, object]:
        """Return the segment as plain values."""
        return {
            "nodes": [node.name for node in self.nodes],
            "name": self.name,
            "seconds": list(self.seconds),
            "kernels": [list(names) for names in self.kernels],
        }


def compare_profiles(first: Profile, second: Profile) -> tuple[ProfileSegment, ...]:
    """Return the segments of two profiles of one model, in order of the model.

    Kernels without nodes, such as layout conversions, make segments by what they do, at the end.
    """
    rows = [(position, row) for position, profile in enumerate((first, second)) for row in profile.rows]
    groups = _Groups()
    for _, row in rows:
        for node in row.kernel.nodes[1:]:
            groups.join(row.kernel.nodes[0], node)
    segments: defaultdict[SourceNode | str, list[tuple[int, ProfileRow]]] = defaultdict(list)
    for position, row in rows:
        key = groups.root(row.kernel.nodes[0]) if row.kernel.nodes else row.label
        segments[key].append((position, row))
    with_nodes = [members for key, members in segments.items() if isinstance(key, SourceNode)]
    others = [members for key, members in segments.items() if isinstance(key, str)]
    return tuple(map(_segment, (*with_nodes, *others)))


def _segment(members: Sequence[tuple[int, ProfileRow]]) -> ProfileSegment:
    nodes = tuple(dict.fromkeys(node for _, row in members for node in row.kernel.nodes))
    largest = max((row for _, row in members), key=lambda row: (row.flop or 0, row.seconds))
    anchor = largest.kernel.anchor
    others = f" (+{len(nodes) - 1})" if len(nodes) > 1 else ""
    return ProfileSegment(
        largest.label if anchor is None else f"{anchor.name}{others}",
        nodes,
        (_seconds(members, 0), _seconds(members, 1)),
        (tuple(_names(members, 0)), tuple(_names(members, 1))),
    )


def _seconds(members: Sequence[tuple[int, ProfileRow]], position: int) -> float:
    return sum(row.seconds for number, row in members if number == position)


def _names(members: Sequence[tuple[int, ProfileRow]], position: int) -> Iterator[str]:
    return (row.kernel.name for number, row in members if number == position)


class _Groups:
    """Disjoint sets of nodes (union-find)."""

    def __init__(self) -> None:
        self._parents: dict[SourceNode, SourceNode] = {}

    def root(self, node: SourceNode) -> SourceNode:
        """Return the node that stands for the set of a node."""
        while node in self._parents:
            node = self._parents[node]
        return node

    def join(self, node: SourceNode, other: SourceNode) -> None:
        """Make one set of the sets of two nodes."""
        root, other_root = self.root(node), self.root(other)
        if root != other_root:
            self._parents[other_root] = root
