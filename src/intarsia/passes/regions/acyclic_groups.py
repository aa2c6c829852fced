"""Groups of the nodes of an acyclic graph, as large as they can be without a cycle between groups.

Contracting an edge of an acyclic graph makes a cycle if, and only if, a longer path leads from the one end to
the other. Nodes are added in topological order; each is joined with the groups that it needs where no path
leads around. The order of the groups is kept up to date, so that a search for such a path only goes back to
where the group stands (the idea of Pearce and Kelly, A dynamic topological sort algorithm for directed
acyclic graphs, 2006): what the search finds not to depend on the group moves before it, and what does depend
on it is remembered, so that neither is looked at again for that group.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf

Kind = Hashable | None


def acyclic_groups(kinds: Sequence[Kind], needs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Group nodes that are adjacent and of one kind; the graph of the groups has no cycle.

    No two adjacent groups of one kind could be joined without making one. Deterministic.

    Cost: one step per edge, and the searches. They look at a group at most once for each group that they are
    done for, so that the cost is linear where few groups stand between the ends of an edge, and at worst
    the product of the numbers of nodes and of groups.

    Args:
        kinds: For each node, what it may be grouped with; None for with nothing.
        needs: For each node, the nodes that it needs; all of them come before it.

    Returns:
        Every group of nodes that have a kind, in order of its first node; nodes in order.
    """
    groups = _Groups(kinds)
    for node, below in enumerate(needs):
        groups.add(node, below)
    members: dict[int, list[int]] = {}
    for node, kind in enumerate(kinds):
        if kind is not None:
            members.setdefault(groups.find(node), []).append(node)
    return list(members.values())


class _Groups:
    """Nodes joined so far; a group is known by one of its nodes, its representative.

    A position is the start of a tuple, to which infinity is added for comparing: so there is always room
    just before it.
    """

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = kinds
        self._parent = list(range(len(kinds)))
        self._needs: list[set[int]] = [set() for _ in kinds]
        self._position: list[tuple[float, ...]] = [(node, inf) for node in range(len(kinds))]
        self._before = [0] * len(kinds)
        self._around: list[set[int]] = [set() for _ in kinds]
        """For each group, groups that it is known to depend on through something else."""

    def find(self, node: int) -> int:
        """The representative of a node's group."""
        parent = self._parent
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    def add(self, node: int, below: Sequence[int]) -> None:
        """Add a node, and join it with what it needs, small groups first."""
        self._needs[node] = {self.find(item) for item in below}
        kind = self._kinds[node]
        if kind is None:
            return
        same = [item for item in self._needs[node] if self._kinds[item] == kind]
        for other in sorted(same, key=lambda item: (len(self._needs[item]), self._position[item])):
            group, earlier = self.find(node), self.find(other)
            if group != earlier and not self._leads_around(group, earlier):
                self._join(group, earlier)

    def _leads_around(self, group: int, earlier: int) -> bool:
        """Whether the group depends on the earlier one through a third."""
        if earlier in self._around[group]:
            return True
        depends = {earlier: True}
        stack = [(item, False) for item in self._current_needs(group) if item != earlier]
        while stack:
            item, is_ready = stack.pop()
            if item in depends:
                continue
            if self._position[item] < self._position[earlier]:
                depends[item] = False
            elif earlier in self._around[item]:
                depends[item] = True
            elif not is_ready:
                stack.append((item, True))
                stack.extend((below, False) for below in self._current_needs(item) if below not in depends)
            else:
                depends[item] = any(depends[below] for below in self._current_needs(item))
                if depends[item]:
                    self._around[item].add(earlier)
                else:
                    self._move_before(item, earlier)
        leads_around = any(depends[item] for item in self._current_needs(group) if item != earlier)
        if leads_around:
            self._around[group].add(earlier)
        return leads_around

    def _current_needs(self, group: int) -> list[int]:
        """The groups that a group needs, by position."""
        current = {self.find(item) for item in self._needs[group]}
        current.discard(group)
        self._needs[group] = current
        return sorted(current, key=self._position.__getitem__)

    def _move_before(self, item: int, group: int) -> None:
        """Move a group, all whose needs stand before another one, to just before that one."""
        self._position[item] = (*self._position[group][:-1], self._before[group], inf)
        self._before[group] += 1
        self._before[item] = 0

    def _join(self, group: int, earlier: int) -> None:
        """Make one group of two; it stands where the earlier one stood, since all it needs is before that."""
        position, before = self._position[earlier], self._before[earlier]
        kept, gone = (
            (earlier, group) if len(self._needs[earlier]) >= len(self._needs[group]) else (group, earlier)
        )
        self._parent[gone] = kept
        self._position[kept], self._before[kept] = position, before
        self._needs[kept] |= self._needs[gone]
        self._around[kept] |= self._around[gone]
        self._needs[gone] = self._around[gone] = set()
