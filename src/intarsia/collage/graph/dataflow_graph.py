"""The expressions of a function as a graph of numbered nodes (seed collage_rfc, Util Datatypes)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from intarsia.collage.graph.dataflow_node import BasicBlock, DataflowNode, can_inline, is_everywhere
from intarsia.collage.graph.index_set import IndexSet
from intarsia.collage.graph.node_kind import node_kind
from intarsia.ir import Expr, Function, children
from intarsia.ir.scope import Scope, ScopedProgram, place
from intarsia.op import OpPatternKind
from intarsia.passes.functions.captured import Captures
from intarsia.passes.functions.sealed import is_sealed
from intarsia.passes.fusion.dominator_tree import DominatorTree
from intarsia.support.post_order import post_order_of


@dataclass(frozen=True, eq=False)
class DataflowGraph:
    """Every expression below a function's body as a node; its index is its post-depth-first number.

    So what a node needs has a smaller index. Nodes are variables, constants, operators, calls, tuples ..., in
    branches, bodies of lets and of function literals as well; a sealed function literal (Compiler,
    Primitive, Composite) is one node, its inside is none. Nodes are found by index (`graph[3]`) or by
    expression (`graph.node(expr)`).

    Every node that has a place is evaluated, or bound, in one `BasicBlock`; a sub-graph lies in one block.
    To give an If, a Let, a Loop or a call of a plain function literal to a toolchain, take all that belongs
    to it: `graph.unit(index)`.

    Building is linear in the function, times log n, and times the depth of functions inside of functions.
    Programs in A-normal form have a block for each let: run ToGraphNormalForm first.

    Attributes:
        function: The function.
        nodes: All nodes by index.
        blocks: The blocks that nodes lie in, enclosing ones first.
        flow_inputs: For each node, the inputs whose values must be handed to it: not the inlinable ones, but
            what these capture.
        flow_outputs: For each node, those that have it among their flow inputs and are not inlinable.
    """

    function: Function
    nodes: tuple[DataflowNode, ...]
    blocks: tuple[BasicBlock, ...]
    flow_inputs: tuple[tuple[int, ...], ...]
    flow_outputs: tuple[tuple[int, ...], ...]
    _index: Mapping[Expr, int]

    @classmethod
    def of(cls, function: Function) -> DataflowGraph:
        """The graph of a global function, or of a function literal that captures nothing."""
        order = _DataflowOrder.of(function)
        index = {expr: number for number, expr in enumerate(order.exprs)}
        inputs = [tuple(dict.fromkeys(index[child] for child in order.below(expr))) for expr in order.exprs]
        outputs = _reversed(inputs)
        flow_inputs = _flow_inputs(order.exprs, inputs)
        blocks = _blocks(order, index, function)
        tree = _dominators(outputs)
        depth = [0] * len(inputs)
        nodes: list[DataflowNode] = []
        for number in reversed(range(len(inputs))):
            parent = tree.dominator(number)
            depth[number] = 0 if parent is None else depth[parent] + 1
            scope = order.scope(order.exprs[number])
            nodes.append(
                DataflowNode(
                    number,
                    order.exprs[number],
                    inputs[number],
                    outputs[number],
                    order.exprs[number] is function.body,
                    None if scope is None else blocks[scope],
                    parent,
                    depth[number],
                )
            )
        handed = [() if can_inline(node.expr) else flow_inputs[node.index] for node in reversed(nodes)]
        flow_outputs = tuple(_reversed(handed))
        return cls(
            function, tuple(reversed(nodes)), tuple(blocks.values()), tuple(flow_inputs), flow_outputs, index
        )

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, index: int) -> DataflowNode:
        return self.nodes[index]

    def __iter__(self) -> Iterator[DataflowNode]:
        return iter(self.nodes)

    def __contains__(self, expr: object) -> bool:
        return expr in self._index

    def node(self, expr: Expr) -> DataflowNode:
        """The node of an expression.

        Raises:
            KeyError: The function has no such expression, or it is inside of a sealed function literal.
        """
        return self.nodes[self._index[expr]]

    def set_of(self, indices: Iterable[int] = ()) -> IndexSet:
        """A set of this graph's nodes."""
        return IndexSet.of(len(self.nodes), indices)

    def exprs(self, indices: Iterable[int]) -> tuple[Expr, ...]:
        """The expressions of some nodes."""
        return tuple(self.nodes[index].expr for index in indices)

    @cached_property
    def everywhere(self) -> IndexSet:
        """Nodes that every function can use without being handed them: inlinable ones, and constants.

        They never hold a sub-graph together, nor leave it; a search may leave them out of what is covered.
        """
        return self.set_of(node.index for node in self.nodes if is_everywhere(node.expr))

    @cached_property
    def computed(self) -> IndexSet:
        """All nodes that a cover must assign: no parameters of the function, no constants, no operators.

        As one sub-graph, it is the whole function.
        """
        params = (self._index[param] for param in self.function.params if param in self._index)
        return IndexSet.full(len(self.nodes)) - self.everywhere - self.set_of(params)

    @cached_property
    def inlinable(self) -> IndexSet:
        """Nodes that are copied to where they are used: see `dataflow_node.can_inline`."""
        return self.set_of(node.index for node in self.nodes if can_inline(node.expr))

    @cached_property
    def owners(self) -> IndexSet:
        """Nodes whose unit is more than the node: If, Let, function literals, and what uses them."""
        return self.set_of(self._units)

    @cached_property
    def kinds(self) -> tuple[OpPatternKind, ...]:
        """The fusion kind of each node (`node_kind`)."""
        return tuple(node_kind(node.expr) for node in self.nodes)

    def downstream_of(self, index: int) -> IndexSet:
        """All nodes that use a node's value, directly or not; the node itself is not among them.

        The sets of all nodes are computed at first use: n words of n bits, so n * n / 8 bytes
        (0.5 MB for 2,000 nodes, 50 MB for 20,000), and as many steps of 64 bits as there are edges times
        n / 64.
        """
        return IndexSet(self._downstream[index], len(self.nodes))

    def flows_into(self, sources: IndexSet, sinks: IndexSet) -> bool:
        """Whether a source is a sink, or a sink is downstream of a source."""
        if not sources or not sinks:
            return False
        return sources.intersects(sinks) or any(self._downstream[one] & sinks.bits for one in sources)

    def unit(self, index: int) -> IndexSet:
        """A node and all that must go to a toolchain with it; for most nodes the node alone.

        For If, Let and function literals these are the nodes evaluated and bound inside. A node that uses
        function literals as values (the body of a Loop, a literal that is called) takes them along, unless
        they are sealed.
        """
        return IndexSet(self._units.get(index, 1 << index), len(self.nodes))

    @cached_property
    def _downstream(self) -> tuple[int, ...]:
        downstream = [0] * len(self.nodes)
        for node in reversed(self.nodes):
            for user in node.outputs:
                downstream[node.index] |= downstream[user] | 1 << user
        return tuple(downstream)

    @cached_property
    def _units(self) -> dict[int, int]:
        """The units that are more than the node, as bits. Inner nodes have smaller indices."""
        units: dict[int, int] = {}
        members: dict[int, int] = {}
        for node in self.nodes:
            index = node.index
            bits = members.get(index, 0)
            for used in node.inputs:
                literal = self.nodes[used].expr
                if isinstance(literal, Function) and not is_sealed(literal):
                    bits |= units.get(used, 1 << used)
            if bits:
                units[index] = bits | 1 << index
            if node.block is not None and node.block.opener is not None:
                opener = node.block.opener
                members[opener] = members.get(opener, 0) | units.get(index, 1 << index)
        return units


def _reversed(edges: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """For each node, the nodes that have it in their list."""
    reversed_edges: list[list[int]] = [[] for _ in edges]
    for index, targets in enumerate(edges):
        for target in targets:
            reversed_edges[target].append(index)
    return list(map(tuple, reversed_edges))


def _flow_inputs(exprs: tuple[Expr, ...], inputs: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    flow_inputs: list[tuple[int, ...]] = []
    for used in inputs:
        flow: dict[int, None] = {}
        for one in used:
            flow.update(dict.fromkeys(flow_inputs[one] if can_inline(exprs[one]) else (one,)))
        flow_inputs.append(tuple(flow))
    return flow_inputs


def _blocks(order: _DataflowOrder, index: Mapping[Expr, int], function: Function) -> dict[Scope, BasicBlock]:
    """The scopes that the nodes lie in; that of the function's body is always among them."""
    body = order.placed.inner[function, len(function.params)]
    used = {order.scope(expr) for expr in order.exprs} | {body}
    openers = {scope: expr for (expr, _), scope in order.placed.inner.items()}
    blocks: dict[Scope, BasicBlock] = {}
    for scope in order.placed.members:  # enclosing scopes come first
        if scope in used:
            blocks[scope] = BasicBlock(len(blocks), index.get(openers[scope]))
    return blocks


def _dominators(outputs: list[tuple[int, ...]]) -> DominatorTree:
    tree = DominatorTree(len(outputs))
    for index in reversed(range(len(outputs))):
        uses = tuple((user, OpPatternKind.OPAQUE) for user in outputs[index])
        tree.add(index, uses, is_result=not uses)
    return tree


@dataclass(slots=True)
class _DataflowOrder:
    """The expressions below a function's body, each after what it uses.

    Sealed function literals count as one expression, which uses what the function captures.

    Attributes:
        exprs: The expressions.
        placed: The scopes of the function.
    """

    exprs: tuple[Expr, ...]
    placed: ScopedProgram
    _captures: Captures = field(repr=False)

    @classmethod
    def of(cls, function: Function) -> _DataflowOrder:
        """The order of a function. Linear, times the depth of functions inside of functions."""
        placed = place(function)
        order = cls((), placed, Captures.of(placed))
        order.exprs = tuple(post_order_of((function.body,), order.below))
        return order

    def below(self, expr: Expr) -> tuple[Expr, ...]:
        """What an expression uses directly."""
        if isinstance(expr, Function) and is_sealed(expr):
            return self._captures.used[expr]
        return children(expr)

    def scope(self, expr: Expr) -> Scope | None:
        """Where an expression is evaluated or bound; None for what can stand anywhere."""
        return None if isinstance(expr, Function) else self._captures.home.get(expr)
