"""Whether several sub-graphs can be contracted to one node each, all at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.index_set import IndexSet


def quotient_cycle(
    graph: DataflowGraph, parts: Sequence[IndexSet], within: IndexSet | None = None
) -> tuple[int, ...]:
    """Positions of parts that need each other in a circle; empty if the parts can all become calls.

    Sub-graphs that are valid by themselves can do so, if one has two results or more: {a1, a2} and {b1, b2}
    with a1 -> b2 and b1 -> a2. Constants and inlinable nodes are left out: they are copied to where they are
    used. Linear in nodes and edges.

    Args:
        graph: The graph.
        parts: Disjoint sets of its nodes.
        within: The nodes that are looked at; None for all.
    """
    looked_at = (IndexSet.full(len(graph)) if within is None else within) - graph.everywhere
    group = {index: index for index in looked_at}
    for position, part in enumerate(parts):
        for index in part & looked_at:
            group[index] = -1 - position
    needs: dict[int, set[int]] = {one: set() for one in group.values()}
    for index, members in group.items():
        found = (group[used] for used in graph.flow_inputs[index] if used in group)
        needs[members].update(found)
    for members, used in needs.items():
        used.discard(members)
    stuck = _stuck(needs)
    return _circle(needs, stuck) if stuck else ()


def _stuck(needs: Mapping[int, Collection[int]]) -> set[int]:
    """What can never be evaluated."""
    users: dict[int, list[int]] = {group: [] for group in needs}
    for group, used in needs.items():
        for other in used:
            users[other].append(group)
    missing = {group: len(used) for group, used in needs.items()}
    ready = [group for group, count in missing.items() if not count]
    while ready:
        for user in users[ready.pop()]:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return {group for group, count in missing.items() if count}


def _circle(needs: Mapping[int, Collection[int]], stuck: set[int]) -> tuple[int, ...]:
    """The parts on one circle: every stuck one needs a stuck one, so that following them comes back."""
    seen: dict[int, int] = {}
    path: list[int] = []
    group = max(stuck)
    while group not in seen:
        seen[group] = len(path)
        path.append(group)
        group = max(other for other in needs[group] if other in stuck)
    return tuple(sorted(-1 - member for member in path[seen[group] :] if member < 0))
