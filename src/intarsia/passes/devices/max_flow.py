"""The smallest cut between two nodes of a network (Dinic's algorithm, without recursion)."""

from __future__ import annotations

from typing import Final

UNBOUNDED: Final = 1 << 60
"""The capacity of an arc that is never cut."""


class FlowNetwork:
    """Directed arcs with whole capacities; node 0 is the source, node 1 the sink."""

    SOURCE: Final = 0
    SINK: Final = 1

    def __init__(self) -> None:
        self._arcs: list[list[int]] = [[], []]
        self._heads: list[int] = []
        self._capacities: list[int] = []

    def node(self) -> int:
        """A new node."""
        self._arcs.append([])
        return len(self._arcs) - 1

    def arc(self, tail: int, head: int, capacity: int) -> None:
        """A new arc."""
        for start, end, size in ((tail, head, capacity), (head, tail, 0)):
            self._arcs[start].append(len(self._heads))
            self._heads.append(end)
            self._capacities.append(size)

    def source_side(self) -> set[int]:
        """The nodes on the source's side of a smallest cut; of all such sets the one within all others."""
        while self._sink_level(levels := self._levels()):
            self._saturate(levels)
        return {node for node, level in enumerate(levels) if level >= 0}

    def _sink_level(self, levels: list[int]) -> bool:
        return levels[self.SINK] >= 0

    def _levels(self) -> list[int]:
        """How many arcs with free capacity lead from the source to each node; -1 where none do."""
        levels = [-1] * len(self._arcs)
        levels[self.SOURCE] = 0
        reached = [self.SOURCE]
        for node in reached:
            for arc in self._arcs[node]:
                head = self._heads[arc]
                if self._capacities[arc] and levels[head] < 0:
                    levels[head] = levels[node] + 1
                    reached.append(head)
        return levels

    def _saturate(self, levels: list[int]) -> None:
        """Send along shortest paths as much as goes."""
        following = [0] * len(self._arcs)
        path: list[int] = []
        node = self.SOURCE
        while True:
            if node == self.SINK:
                sent = min(self._capacities[arc] for arc in path)
                for arc in path:
                    self._capacities[arc] -= sent
                    self._capacities[arc ^ 1] += sent
                full = next(place for place, arc in enumerate(path) if not self._capacities[arc])
                node = self._heads[path[full] ^ 1]
                del path[full:]
                continue
            onward = self._next_arc(node, levels, following)
            if onward is not None:
                path.append(onward)
                node = self._heads[onward]
            elif path:
                node = self._heads[path.pop() ^ 1]
                following[node] += 1
            else:
                return

    def _next_arc(self, node: int, levels: list[int], following: list[int]) -> int | None:
        arcs = self._arcs[node]
        while following[node] < len(arcs):
            arc = arcs[following[node]]
            if self._capacities[arc] and levels[self._heads[arc]] == levels[node] + 1:
                return arc
            following[node] += 1
        return None
