"""The tree of immediate post-dominators of a dataflow graph, with the fusion kind along its edges.

Source: graph fusion as in TVM (OSDI 2018, section 3). Ancestors are found through Myers' jump pointers
("An applicative random-access stack", 1983), so that a query takes O(log n) steps however deep the tree is.
"""

from __future__ import annotations

from intarsia.op import OpPatternKind


class DominatorTree:
    """Grows from the results of a graph to its inputs: add each node after all that consume it.

    Nodes are the numbers 0 to n - 1. A node whose value is used elsewhere too has no dominator: its paths
    meet in the exit, which is the root.

    Args:
        size: The number of nodes.
    """

    def __init__(self, size: int) -> None:
        self._exit = size
        self._parent = [size] * (size + 1)
        self._jump = [size] * (size + 1)
        self._depth = [0] * (size + 1)
        self._kind = [OpPatternKind.ELEMWISE] * (size + 1)
        self._jump_kind = [OpPatternKind.ELEMWISE] * (size + 1)

    def add(self, node: int, consumers: tuple[tuple[int, OpPatternKind], ...], is_result: bool) -> None:
        """Add a node, given its consumers and how each uses it.

        Args:
            node: Its number.
            consumers: Nodes that were added already, with the kind of the use.
            is_result: Whether the value is used outside of the graph.
        """
        parent = self._exit if is_result or not consumers else consumers[0][0]
        kind = OpPatternKind.OPAQUE if parent == self._exit else consumers[0][1]
        for other, use in consumers[1:]:
            if parent == self._exit:
                break
            parent, kind = self._meeting(parent, other, max(kind, use))
        above = self._jump[parent]
        self._parent[node], self._kind[node] = parent, kind
        self._depth[node] = self._depth[parent] + 1
        is_doubled = (
            self._depth[parent] - self._depth[above] == self._depth[above] - self._depth[self._jump[above]]
        )
        self._jump[node] = self._jump[above] if is_doubled else parent
        along = max(self._jump_kind[parent], self._jump_kind[above])
        self._jump_kind[node] = max(kind, along) if is_doubled else kind

    def dominator(self, node: int) -> int | None:
        """The first node that all paths from `node` pass; None for the exit."""
        parent = self._parent[node]
        return None if parent == self._exit else parent

    def kind(self, node: int) -> OpPatternKind:
        """The least fusable kind among the uses on all paths from `node` to its dominator."""
        return self._kind[node]

    def _meeting(self, left: int, right: int, kind: OpPatternKind) -> tuple[int, OpPatternKind]:
        """The closest node that dominates both or is one of them, and the kind of all on the way."""
        depth = min(self._depth[left], self._depth[right])
        left, kind = self._raised(left, depth, kind)
        right, kind = self._raised(right, depth, kind)
        while left != right:
            if self._jump[left] != self._jump[right]:
                kind = max(kind, self._jump_kind[left], self._jump_kind[right])
                left, right = self._jump[left], self._jump[right]
            else:
                kind = max(kind, self._kind[left], self._kind[right])
                left, right = self._parent[left], self._parent[right]
        return left, kind

    def _raised(self, node: int, depth: int, kind: OpPatternKind) -> tuple[int, OpPatternKind]:
        while self._depth[node] > depth:
            if self._depth[self._jump[node]] >= depth:
                kind, node = max(kind, self._jump_kind[node]), self._jump[node]
            else:
                kind, node = max(kind, self._kind[node]), self._parent[node]
        return node, kind
