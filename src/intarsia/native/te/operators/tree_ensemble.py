"""Decision trees: intarsia::tree_ensemble (op/tree_ensemble_op says what its arguments are)."""

from __future__ import annotations

from collections.abc import Sequence
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

_ROWS_OF_A_BLOCK = 16
"""Number of rows that go down one tree before the next: trees stay in the cache, and paths overlap.

A block is also what a thread takes at a time."""


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
        size = min(rows, _ROWS_OF_A_BLOCK)
        block = LoopVar("b")

        def row(name: str) -> tuple[LoopVar, Expression]:
            variable = LoopVar(name)
            return variable, scaled(Expression(block), size) + Expression(variable)

        first, first_row = row("r")
        start = const(aggregate_start(self._aggregate, x.dtype.numpy), x.dtype)
        init = For(
            first,
            size,
            self._inside(
                first_row, loop_nest("j", (count,), lambda j: store(buffer, (first_row, *j), start))
            ),
        )
        second, second_row = row("q")
        paths = loop_nest(
            "t",
            (self.inputs[7].shape[0],),
            lambda t: For(second, size, self._inside(second_row, self._path(buffer, second_row, t[0]))),
        )
        body = For(block, -(-rows // size), Block((init, paths)), ForKind.PARALLEL)
        return declare_written(buffer, self.inputs, body)

    @property
    def _aggregate(self) -> str:
        return self.call.text("aggregate")

    def _inside(self, row: Expression, statement: Statement) -> Statement:
        """Return the statement, guarded where the last block is not full."""
        rows = self.call.shape[0]
        return when(row < rows, statement) if rows % min(rows, _ROWS_OF_A_BLOCK) else statement

    def _path(self, result: Buffer, row: Expression, tree: Expression) -> Statement:
        """Build the path of one row down one tree, which adds the leaf."""
        roots, depths = self.inputs[7], self.inputs[8]
        depth_values = self.call.constants[8]
        longest = int(depth_values.max(initial=0)) if depth_values is not None else 0
        shortest = int(depth_values.min(initial=longest)) if depth_values is not None else 0
        node = Buffer(f"{self.call.name}.node", (), DType.INT32, MemoryScope.THREAD)
        depth = LoopVar("d")
        step = self._step(node, row)
        if shortest < longest:
            step = when(Expression(depth) < depths[tree].astype(DType.INT64), step)
        path = Block((store(node, (), roots[tree]), For(depth, longest, step), self._add(result, row, node)))
        return Allocate(node, path)

    def _step(self, node: Buffer, row: Expression) -> Statement:
        x, features, thresholds, children = self.inputs[:4]
        here = load(node, ()).astype(DType.INT64)
        value = x[row, features[here].astype(DType.INT64)]
        branch = select(value <= thresholds[here], const(1, DType.INT64), const(0, DType.INT64))
        if children.shape[1] > 2:
            # NaN compares false with everything, so it has a child of its own.
            branch = select(not_equal(value, value), const(2, DType.INT64), branch)
        return store(node, (), children[here, branch])

    def _add(self, result: Buffer, row: Expression, node: Buffer) -> Statement:
        leaves, targets, weights = self.inputs[4:7]
        leaf = leaves[load(node, ()).astype(DType.INT64)].astype(DType.INT64)
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
