"""Branches: parts of a block that lead to one node only."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.block_item import BlockItem


def branch_regions(
    graph: DataflowGraph, items: Sequence[BlockItem], max_branch: int
) -> list[list[BlockItem]]:
    """For each of several branches that meet again in one node, the items that lead nowhere else.

    These are subtrees of the dominator tree whose roots have siblings: all that a branch computes between the
    values it shares with others and the node where it meets them. Such a region has one result, and no path
    leaves it and comes back. A sub-tree of one item, or of more than `max_branch`, is left out: the latter
    is rather what comes before than a branch. Linear, times the depth of branches in branches.
    """
    of = {item.index: item for item in items}
    below: dict[int, list[int]] = {}
    for item in items:
        parent = graph[item.index].dominator_parent
        if parent is not None and parent in of:
            below.setdefault(parent, []).append(item.index)
    sizes: dict[int, int] = {}
    for item in items:  # what a node dominates has a smaller index
        sizes[item.index] = 1 + sum(sizes[one] for one in below.get(item.index, ()))
    roots = [one for found in below.values() if len(found) > 1 for one in found]
    return [
        [of[index] for index in _subtree(root, below)]
        for root in sorted(roots)
        if 1 < sizes[root] <= max_branch
    ]


def _subtree(root: int, below: dict[int, list[int]]) -> list[int]:
    subtree, waiting = [], [root]
    while waiting:
        index = waiting.pop()
        subtree.append(index)
        waiting.extend(below.get(index, ()))
    return sorted(subtree)
