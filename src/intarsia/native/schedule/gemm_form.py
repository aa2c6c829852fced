"""Products of matrices among the operations of a DAG."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Load, LoopVar, Scalar
from intarsia.native.dag import AccessAnalyzer
from intarsia.native.te import ComputeOp, Operation


@dataclass(frozen=True)
class GemmForm:
    """A sum over one axis of products of two elements.

    Attributes:
        op: The operation.
        row: Place of the axis that the left matrix only has, None if all such axes have one element.
        column: Place of the axis that the right matrix only has; it is vectorised.
        left: What is read once for each row.
        right: What is read once for each column.
        right_is_packed: Whether the right one is a constant that may be laid out as it is read.
        right_runs_along_columns: Whether elements of the right one for neighbouring columns are neighbours.
        right_is_moved: Whether the right one is made of elements in another order, as a transposed matrix is.
        runs_along_sum: Whether neighbouring elements of both are summed, those of the right one where they
            were before they are moved.
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
    def rows(self) -> int:
        """How many rows one of the products has."""
        return 1 if self.row is None else self.op.axes[self.row].extent

    @property
    def columns(self) -> int:
        """How many columns it has."""
        return self.op.axes[self.column].extent

    @property
    def depth(self) -> int:
        """How many products are summed."""
        return self.op.reduce_axes[0].extent


def gemm_form(op: Operation, analyzer: AccessAnalyzer) -> GemmForm | None:
    """An operation as a product of matrices; None if it is none."""
    if not isinstance(op, ComputeOp) or op.combiner is None or len(op.reduce_axes) != 1:
        return None
    factors = _factors(op)
    if factors is None:
        return None
    axes = [place for place, axis in enumerate(op.axes) if axis.extent > 1]
    vars_ = [frozenset(_axis_places(op, load)) for load in factors]
    columns = [place for place in axes if (place in vars_[0]) != (place in vars_[1])]
    if not columns or columns[-1] != axes[-1]:
        return None
    column = columns[-1]
    left, right = factors if column in vars_[1] else (factors[1], factors[0])
    own = _axis_places(op, left)
    rows = [place for place in own if place in columns]
    row = max(rows, key=lambda place: op.axes[place].extent) if rows else None
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
    """Whether neighbours in memory are summed: of the right matrix, or of what it is a transposed copy of."""
    k = op.reduce_axes[0].var
    if left.indices[-1] != k or _is_moved(left_op):
        return False
    if not _is_moved(right_op):
        return right.indices[-1] == k
    assert isinstance(right_op, ComputeOp), "others move nothing"
    if right_op.reduce_axes or len(right_op.bodies) != 1:
        return False
    axes = {axis.var: place for place, axis in enumerate(right_op.axes)}
    match right_op.bodies[0]:
        case Load(indices=(*_, LoopVar() as last)) if last in axes:
            return right.indices[axes[last]] == k
    return False


def _is_moved(op: Operation) -> bool:
    """Whether neighbouring elements are not made of neighbours."""
    if not isinstance(op, ComputeOp) or op.combiner is not None or not op.axes:
        return False
    parts = (part for body in op.bodies for part, _ in scalar_post_order(body))
    last = op.axes[-1].var
    return any(
        isinstance(part, Load) and last in _vars(*part.indices) and part.indices[-1] != last for part in parts
    )


def _factors(op: ComputeOp) -> tuple[Load, Load] | None:
    """The two loads whose products are summed; both depend on the reduction axis."""
    assert op.combiner is not None
    if op.combiner.name != "sum" or len(op.bodies) != 1:
        return None
    match op.bodies[0]:
        case Arith(op=ArithOp.MUL, operands=(Load() as left, Load() as right)):
            k = op.reduce_axes[0].var
            if left.buffer != right.buffer and k in _vars(*left.indices) and k in _vars(*right.indices):
                return left, right
    return None


def _axis_places(op: ComputeOp, load: Load) -> list[int]:
    """The axes with more than one element that a load depends on."""
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
    """Whether each element is made of the one at the same place of a constant that nothing else reads."""
    own = tuple(axis.var for axis in op.axes)
    return analyzer.dag.readers[constant] == (op,) and list(analyzer.read_from[op][constant]) == [own]
