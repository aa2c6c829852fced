"""Matching of matrix products among the operations of a DAG."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic, Load, LoopVar, Scalar
from intarsia.native.dag.access import AccessAnalyzer
from intarsia.native.te import ComputeOp, Operation
from intarsia.native.te.op_attrs import PACKING


class MatrixPacking(Enum):
    """Mode of reading the right matrix of a product, where that is decided.

    Attributes:
        UNPACKED: The matrix is read where it is, with vectors along its columns.
        PANELS: Panels are packed where they are used.
        ALONG_SUM: The matrix is read where it is, with vectors along the sum.
    """

    UNPACKED = "unpacked"
    PANELS = "panels"
    ALONG_SUM = "along_sum"


@dataclass(frozen=True)
class GemmForm:
    """A sum over one axis of products of two elements.

    Attributes:
        op: Operation that computes the product.
        row: Index of the axis that only the left matrix has, None if all such axes have one element.
        column: Index of the axis that only the right matrix has; it is vectorised.
        left: Operation that produces the left matrix.
        right: Operation that produces the right matrix.
        right_is_packed: Whether the right matrix is a constant that may be packed ahead of time.
        right_runs_along_columns: Whether neighbouring columns of the right matrix are contiguous.
        right_is_moved: Whether the right matrix is a reordered copy, such as a transposed matrix.
        runs_along_sum: Whether both matrices are contiguous along the sum, the right one before it is moved.
    """

    op: ComputeOp
    row: int | None
    column: int
    left: Operation
    right: Operation
    right_is_packed: bool
    right_runs_along_columns: bool
    right_is_moved: bool
    runs_along_sum: bool

    @property
    def decided(self) -> MatrixPacking | None:
        """Mode that was decided for the right matrix; None for the rule."""
        packing = self.op.attrs.get(PACKING)
        return None if packing is None else MatrixPacking(packing)

    @property
    def rows(self) -> int:
        """Number of rows of one product."""
        return 1 if self.row is None else self.op.axes[self.row].extent

    @property
    def columns(self) -> int:
        """Number of columns of one product."""
        return self.op.axes[self.column].extent

    @property
    def depth(self) -> int:
        """Number of products that are summed."""
        return self.op.reduce_axes[0].extent


def gemm_form(op: Operation, analyzer: AccessAnalyzer) -> GemmForm | None:
    """Match an operation as a product of matrices; None if it is none."""
    if not isinstance(op, ComputeOp) or op.combiner is None or len(op.reduce_axes) != 1:
        return None
    factors = _factors(op)
    if factors is None:
        return None
    axes = [i for i, axis in enumerate(op.axes) if axis.extent > 1]
    vars_ = [frozenset(_axis_places(op, load)) for load in factors]
    columns = [i for i in axes if (i in vars_[0]) != (i in vars_[1])]
    if not columns or columns[-1] != axes[-1]:
        return None
    column = columns[-1]
    left, right = factors if column in vars_[1] else (factors[1], factors[0])
    left_axes = _axis_places(op, left)
    rows = [i for i in left_axes if i in columns]
    row = max(rows, key=lambda i: op.axes[i].extent) if rows else None
    producers = {tensor.buffer: tensor.op for tensor in op.inputs}
    right_op = producers[right.buffer]
    return GemmForm(
        op=op,
        row=row,
        column=column,
        left=producers[left.buffer],
        right=right_op,
        right_is_packed=_is_packed(op, right_op, analyzer),
        right_runs_along_columns=right.indices[-1] == op.axes[column].var,
        right_is_moved=_is_moved(right_op),
        runs_along_sum=_runs_along_sum(op, left, producers[left.buffer], right, right_op),
    )


def _runs_along_sum(op: ComputeOp, left: Load, left_op: Operation, right: Load, right_op: Operation) -> bool:
    """Return whether sums run along contiguous elements, of the right matrix or of the source of its copy."""
    k = op.reduce_axes[0].var
    if _last_index(left) != k or _is_moved(left_op):
        return False
    if not _is_moved(right_op):
        return _last_index(right) == k
    assert isinstance(right_op, ComputeOp), "others move nothing"
    if right_op.reduce_axes or len(right_op.bodies) != 1:
        return False
    axes = {axis.var: place for place, axis in enumerate(right_op.axes)}
    match right_op.bodies[0]:
        case Load(indices=(*_, LoopVar() as last)) if last in axes:
            return right.indices[axes[last]] == k
    return False


def _last_index(load: Load) -> Scalar:
    """Return the index along which neighbours are contiguous: a matrix of one column is a vector."""
    pairs = zip(load.indices, load.buffer.shape, strict=True)
    return next((index for index, extent in reversed(list(pairs)) if extent > 1), load.indices[-1])


def _is_moved(op: Operation) -> bool:
    """Return whether neighbouring elements come from elements that are not contiguous."""
    if not isinstance(op, ComputeOp) or op.combiner is not None or not op.axes:
        return False
    parts = (part for body in op.bodies for part, _ in scalar_post_order(body))
    last = op.axes[-1].var
    return any(
        isinstance(part, Load) and last in _vars(*part.indices) and part.indices[-1] != last for part in parts
    )


def _factors(op: ComputeOp) -> tuple[Load, Load] | None:
    """Return the two loads whose products are summed; both depend on the reduction axis."""
    assert op.combiner is not None
    if op.combiner.name != "sum" or len(op.bodies) != 1:
        return None
    match op.bodies[0]:
        case (
            Arith(op=ArithOp.MUL, operands=(Load() as left, Load() as right))
            | Intrinsic(name="dot_u8s8" | "dot_bf16", args=(Load() as left, Load() as right))
        ):
            k = op.reduce_axes[0].var
            if left.buffer != right.buffer and k in _vars(*left.indices) and k in _vars(*right.indices):
                return left, right
    return None


def _axis_places(op: ComputeOp, load: Load) -> list[int]:
    """Return the indices of the axes with more than one element that a load depends on."""
    found = _vars(*load.indices)
    return [place for place, axis in enumerate(op.axes) if axis.extent > 1 and axis.var in found]


def _vars(*indices: Scalar) -> set[Scalar]:
    return {part for index in indices for part, _ in scalar_post_order(index) if isinstance(part, LoopVar)}


def _is_packed(op: ComputeOp, right: Operation, analyzer: AccessAnalyzer) -> bool:
    listed = op.attrs.get("layout_free_placeholders", ())
    names = listed if isinstance(listed, tuple) else (listed,)
    reads = analyzer.read_from[op].get(right, ())
    if analyzer.dag.readers[right] != (op,) or len(reads) != 1:
        return False
    return right.name in names or (
        isinstance(right, ComputeOp)
        and right.combiner is None
        and any(_is_made_of(right, tensor.op, analyzer) for tensor in right.inputs if tensor.op.name in names)
    )


def _is_made_of(op: ComputeOp, constant: Operation, analyzer: AccessAnalyzer) -> bool:
    """Return whether an operation is elementwise in a constant that nothing else reads."""
    identity = tuple(axis.var for axis in op.axes)
    return analyzer.dag.readers[constant] == (op,) and list(analyzer.read_from[op][constant]) == [identity]
