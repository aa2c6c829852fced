"""Decision trees: intarsia::tree_ensemble (op/tree_ensemble_op says what its arguments are)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intarsia.ir import DType
from intarsia.ir.prim_func import (
    Allocate,
    Block,
    Buffer,
    For,
    ForKind,
    LoopVar,
    MemoryScope,
    Statement,
)
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, maximum, minimum, not_equal, select
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import scaled
from intarsia.native.te.operators.loop_nest import declare_written, load, loop_nest, store, when
from intarsia.native.te.tensor import Tensor
from intarsia.op.tree_ensemble_op import aggregate_start

_PATHS = 16
"""Paths that take their steps side by side: of 16 rows down a tree, or of fewer rows down several trees.

A step waits for what the one before it read; steps of other paths do not. With 16 rows, trees stay in the
cache. So many rows are also what a thread takes at a time.
"""


@dataclass(frozen=True, slots=True)
class _Path:
    """The loop variables of one path.

    Attributes:
        row: The row.
        tree: The tree.
        number: Its number among the paths that are side by side.
    """

    row: Expression
    tree: Expression
    number: Expression


@compute_rule("intarsia::tree_ensemble")
def tree_ensemble(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the sums of leaves: each path takes as many steps as the tree is deep, without branches."""
    return [_Forest(call, [call.input(position) for position in range(9)]).result()]


@dataclass(frozen=True, eq=False)
class _Forest:
    """Builds the loops of one call.

    Attributes:
        call: The call.
        inputs: Its arguments.
    """

    call: ComputeCall
    inputs: Sequence[Tensor]

    def result(self) -> Tensor:
        """Return the tensor that the loops write."""
        rows, count = self.call.shape
        x = self.inputs[0]
        buffer = Buffer(self.call.name, (rows, count), x.dtype)
        if rows == 0 or count == 0:
            return declare_written(buffer, self.inputs, Block(()))
        height = min(rows, _PATHS)
        block = LoopVar("b")
        first, first_row = self._row("r", block, height)
        start = const(aggregate_start(self._aggregate, x.dtype.numpy), x.dtype)
        init = loop_nest("j", (count,), lambda j: store(buffer, (first_row, *j), start))
        groups = -(-self._trees // self._trees_of_a_group)
        paths = loop_nest("t", (groups,), lambda t: self._paths(buffer, block, t[0]))
        body = Block((For(first, height, self._within(first_row, rows, height, init)), paths))
        return declare_written(buffer, self.inputs, For(block, -(-rows // height), body, ForKind.PARALLEL))

    @property
    def _aggregate(self) -> str:
        return self.call.text("aggregate")

    @property
    def _trees(self) -> int:
        return self.inputs[7].shape[0]

    @property
    def _trees_of_a_group(self) -> int:
        return max(1, min(_PATHS // min(self.call.shape[0], _PATHS), self._trees))

    def _row(self, name: str, block: LoopVar, height: int) -> tuple[LoopVar, Expression]:
        variable = LoopVar(name)
        return variable, scaled(Expression(block), height) + Expression(variable)

    def _within(self, index: Expression, extent: int, tile: int, statement: Statement) -> Statement:
        """Return the statement, guarded where the last tile is not full."""
        return when(index < extent, statement) if extent % tile else statement

    def _paths(self, result: Buffer, block: LoopVar, group: Expression) -> Statement:
        """Build the paths of a block's rows down a group of trees, step by step, and the sums of leaves."""
        rows, roots, depths = self.call.shape[0], self.inputs[7], self.inputs[8]
        height, width = min(rows, _PATHS), self._trees_of_a_group
        node = Buffer(f"{self.call.name}.node", (height * width,), DType.INT32, MemoryScope.THREAD)
        deepest = Buffer(f"{self.call.name}.deepest", (), DType.INT32, MemoryScope.THREAD)

        def of_group(name: str, statement: Callable[[Expression, Expression], Statement]) -> Statement:
            """Build a loop over the trees of the group; the statement is for a tree and its number there."""
            variable = LoopVar(name)
            tree = scaled(group, width) + Expression(variable)
            inside = self._within(tree, self._trees, width, statement(tree, Expression(variable)))
            return For(variable, width, inside)

        def of_paths(name: str, statement: Callable[[_Path], Statement]) -> Statement:
            """Build a loop over the paths: each tree by the rows."""

            def of_tree(tree: Expression, number: Expression) -> Statement:
                variable, row = self._row(f"{name}r", block, height)
                path = _Path(row, tree, scaled(number, height) + Expression(variable))
                return For(variable, height, self._within(row, rows, height, statement(path)))

            return of_group(f"{name}t", of_tree)

        depth_values = self.call.constants[8]
        longest = int(depth_values.max(initial=0)) if depth_values is not None else 0
        shortest = int(depth_values.min(initial=longest)) if depth_values is not None else 0
        depth = LoopVar("d")
        step = of_paths("q", lambda path: self._step(node, path))
        if shortest < longest:
            step = when(Expression(depth) < load(deepest, ()).astype(DType.INT64), step)
        statements = (
            store(deepest, (), const(0, DType.INT32)),
            of_group("g", lambda tree, _: store(deepest, (), maximum(load(deepest, ()), depths[tree]))),
            of_paths("p", lambda path: store(node, (path.number,), roots[path.tree])),
            For(depth, longest, step),
            of_paths("l", lambda path: self._add(result, path.row, load(node, (path.number,)))),
        )
        return Allocate(node, Allocate(deepest, Block(statements)))

    def _step(self, node: Buffer, path: _Path) -> Statement:
        """Build a step of a path; a path that has ended stays at its leaf."""
        x, features, thresholds, children = self.inputs[:4]
        here = load(node, (path.number,)).astype(DType.INT64)
        value = x[path.row, features[here].astype(DType.INT64)]
        branch = select(value <= thresholds[here], const(1, DType.INT64), const(0, DType.INT64))
        if children.shape[1] > 2:
            # NaN compares false with everything, so it has a child of its own.
            branch = select(not_equal(value, value), const(2, DType.INT64), branch)
        return store(node, (path.number,), children[here, branch])

    def _add(self, result: Buffer, row: Expression, node: Expression) -> Statement:
        leaves, targets, weights = self.inputs[4:7]
        leaf = leaves[node.astype(DType.INT64)].astype(DType.INT64)
        count = self.call.shape[1]
        if weights.shape[1] == count:
            return loop_nest("w", (count,), lambda j: self._combine(result, (row, *j), weights[leaf, j[0]]))
        target = targets[leaf].astype(DType.INT64)
        return self._combine(result, (row, target), weights[leaf, 0])

    def _combine(self, result: Buffer, index: Sequence[Expression], weight: Expression) -> Statement:
        so_far = load(result, index)
        match self._aggregate:
            case "MIN":
                return store(result, index, minimum(so_far, weight))
            case "MAX":
                return store(result, index, maximum(so_far, weight))
            case _:
                return store(result, index, so_far + weight)
