"""Growing groups of expressions along post-dominators: union-find with the kind and size of each group.

Source: graph fusion as in TVM (OSDI 2018, section 3): an expression joins the group of its post-dominator if
everything on the paths between them can be computed with it. So a group is left only at its last
expression, and no path leaves a group and comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from intarsia.ir import Call, Expr, Op, TupleGetItem
from intarsia.op import OpPatternKind
from intarsia.passes.fusion.fusion_graph import FusionGraph

_ELEMWISE, _BROADCAST = OpPatternKind.ELEMWISE, OpPatternKind.BROADCAST
_INJECTIVE, _REDUCE = OpPatternKind.INJECTIVE, OpPatternKind.COMM_REDUCE
_HEAVY, _TUPLE = OpPatternKind.OUT_ELEMWISE_FUSABLE, OpPatternKind.TUPLE


class _Round(IntEnum):
    """What is fused in a round: first what follows heavy operators, as it decides the loops of a group."""

    HEAVY_AND_BROADCAST = 0
    INJECTIVE = 1
    INTO_TUPLES = 2


class _Limits(NamedTuple):
    """What may lie on the paths from an expression to its post-dominator.

    Attributes:
        between: The least fusable kind between the two.
        end: The kinds allowed for the group of the post-dominator.
    """

    between: OpPatternKind
    end: tuple[OpPatternKind, ...]


class MissedFusion(NamedTuple):
    """Two operators that stay apart.

    Attributes:
        call: The operator whose result the other uses.
        user: The operator through which all uses of the result go.
        reason: Why they stay apart.
    """

    call: Expr
    user: Expr
    reason: str


class FusionGroups:
    """A partition of the nodes of a graph.

    Args:
        graph: The graph.
        max_depth: The largest number of operators in a group.
    """

    def __init__(self, graph: FusionGraph, max_depth: int) -> None:
        self._graph = graph
        self._max_depth = max_depth
        self._tree = graph.dominators()
        self._leader = list(range(len(graph.nodes)))
        self._kind = list(graph.kinds)
        self._is_operator = [isinstance(node, Call) and isinstance(node.op, Op) for node in graph.nodes]
        self._size = list(map(int, self._is_operator))

    @classmethod
    def grown(cls, graph: FusionGraph, max_depth: int) -> FusionGroups:
        """The groups of a graph. Linear, times log n for dominators and at most `max_depth` for paths."""
        groups = cls(graph, max_depth)
        for phase in _Round:
            for node in range(len(graph.nodes)):
                groups._fuse(node, phase)
        return groups

    def members(self) -> tuple[tuple[int, ...], ...]:
        """The nodes of each group in order, the last of which is the group's result.

        A field of a tuple that the group does not compute is left to its surroundings, so that functions
        take tensors.
        """
        groups: dict[int, list[int]] = {}
        for node in range(len(self._leader)):
            groups.setdefault(self._group(node), []).append(node)
        return tuple(self._without_outer_fields(group) for group in groups.values())

    def missed(self) -> Iterator[MissedFusion]:
        """The operators that stay apart from the operators that use their results, each with the reason.

        Opaque operators are left out: they are fused with nothing.
        """
        for node, is_operator in enumerate(self._is_operator):
            is_candidate = is_operator and self._graph.kinds[node] is not OpPatternKind.OPAQUE
            end = self._tree.dominator(node) if is_candidate else None
            if end is None or not self._is_operator[end] or self._group(node) == self._group(end):
                continue
            yield MissedFusion(self._graph.nodes[node], self._graph.nodes[end], self._reason(node, end))

    def _reason(self, node: int, end: int) -> str:
        """Why two operators are in two groups."""
        path = self._path(node, end)
        limits = [limits for phase in _Round if (limits := self._limits(node, end, phase)) is not None]
        if not limits:
            kinds = (self._graph.kinds[index].name.lower() for index in (node, end))
            return f"operators of the kinds {' and '.join(kinds)} are not fused"
        too_many = f"together they would be more than max_depth={self._max_depth} operators"
        device = self._graph.nodes[end].virtual_device
        if path is None:
            return too_many
        if any(self._graph.nodes[item].virtual_device != device for item in path):
            return "they are on different devices"
        if not any(self._is_allowed(path, end, item) for item in limits):
            return "an operator between them, or the group of the second, is of a kind that is not fused"
        return too_many

    def _without_outer_fields(self, group: list[int]) -> tuple[int, ...]:
        nodes = {self._graph.nodes[node] for node in group}
        return tuple(
            node
            for node in group
            if not isinstance(item := self._graph.nodes[node], TupleGetItem) or item.tuple_value in nodes
        )

    def _group(self, node: int) -> int:
        """The node that stands for the group of `node`; paths are halved on the way."""
        leader = self._leader
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    def _fuse(self, node: int, phase: _Round) -> None:
        """Join the group of the post-dominator if kinds, devices and the size allow it."""
        end = self._tree.dominator(node)
        if end is None or self._group(node) == self._group(end):
            return
        limits = self._limits(node, end, phase)
        if limits is None:
            return
        path = self._path(node, end)
        if path is None or not self._is_allowed(path, end, limits):
            return
        groups = {self._group(item) for item in path}
        if sum(self._size[group] for group in groups) <= self._max_depth:
            self._join(groups, self._group(end))

    def _limits(self, node: int, end: int, phase: _Round) -> _Limits | None:
        """Which kinds may lie on the way to the post-dominator; None if nothing is to be fused."""
        kind, into = self._kind[self._group(node)], self._kind[self._group(end)]
        if phase is _Round.INTO_TUPLES:
            is_inner_tuple = self._graph.kinds[end] is _TUPLE and into <= _INJECTIVE
            return _Limits(_INJECTIVE, (into,)) if kind <= _INJECTIVE and is_inner_tuple else None
        if self._graph.kinds[end] is _TUPLE:
            return None
        if kind is _HEAVY and phase is _Round.HEAVY_AND_BROADCAST:
            is_pointwise = self._tree.kind(node) is _ELEMWISE
            return _Limits(_BROADCAST, (_ELEMWISE, _BROADCAST)) if is_pointwise else None
        if kind <= _BROADCAST and self._tree.kind(node) <= _REDUCE:
            return _Limits(_INJECTIVE, (_ELEMWISE, _BROADCAST, _INJECTIVE, _REDUCE, _HEAVY))
        if kind in (_INJECTIVE, _TUPLE) and phase is _Round.INJECTIVE:
            return _Limits(_INJECTIVE, (_ELEMWISE, _BROADCAST, _INJECTIVE))
        return None

    def _path(self, node: int, end: int) -> list[int] | None:
        """All nodes on paths between the two, `node` first; None if they are too many for a group."""
        seen = {node: None, end: None}
        waiting, size = [node], int(self._is_operator[node]) + self._is_operator[end]
        while waiting and size <= self._max_depth:
            for consumer, _ in self._graph.consumers[waiting.pop()]:
                if consumer not in seen:
                    seen[consumer] = None
                    waiting.append(consumer)
                    size += self._is_operator[consumer]
        return list(seen) if size <= self._max_depth else None

    def _is_allowed(self, path: list[int], end: int, limits: _Limits) -> bool:
        """Whether all but the first node of a path are of allowed kinds, and all are on one device."""
        device = self._graph.nodes[end].virtual_device
        if any(self._graph.nodes[item].virtual_device != device for item in path):
            return False
        inner = (self._kind[self._group(item)] for item in path[1:] if item != end)
        return self._kind[self._group(end)] in limits.end and all(kind <= limits.between for kind in inner)

    def _join(self, groups: Iterable[int], into: int) -> None:
        """Unite groups; a heavy operator decides the kind of the whole, else the last expression does."""
        for group in groups:
            if group == into:
                continue
            self._leader[group] = into
            self._size[into] += self._size[group]
            if self._kind[group] is _HEAVY:
                self._kind[into] = _HEAVY
