"""Layout rewrite: states that read packed placeholders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic, Literal, Load, Scalar
from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.respliced import free_op_name, respliced
from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.loop_state.loop_layout import loop_layouts
from intarsia.native.loop_state.shifted_steps import shifted_steps
from intarsia.native.loop_state.state import LoopState
from intarsia.native.packing import Packing
from intarsia.native.te.functions import IF_THEN_ELSE
from intarsia.native.te.iter_var import IterVar
from intarsia.native.te.op_attrs import LAYOUT_FREE
from intarsia.native.te.rewrite_scalar import rewrite_scalar
from intarsia.native.te.tensor import ComputeOp, PlaceholderOp, Tensor


class LayoutRewriteOption(IntEnum):
    """Treatment of placeholders with a free layout; the numbers are those of TVM's v0.6 log."""

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2


@dataclass(frozen=True, slots=True)
class LayoutRewrite:
    """An equivalent state over a DAG with packed placeholders.

    Attributes:
        state: State whose `initial_dag` is the new DAG, and whose history fits it.
        packings: Packings that the caller must apply to its arguments; () if stages of the state pack them.
    """

    state: LoopState
    packings: tuple[Packing, ...]


def rewrite_layout(state: LoopState, option: LayoutRewriteOption) -> LayoutRewrite:
    """Rewrite a state to read its `layout_free_placeholders` in the order of its loops.

    INSERT_TRANSFORM_STAGE adds a packing stage before the reader, parallel over its outer axes.
    REWRITE_FOR_PRE_TRANSFORMED gives the placeholder the packed shape.

    Args:
        state: State with the ranges of all loops.
        option: Treatment of the layouts.
    """
    packings = loop_layouts(state) if option is not LayoutRewriteOption.NO_REWRITE else ()
    if not packings:
        return LayoutRewrite(state, ())
    dag, steps = state.initial_dag, state.transform_steps
    for packing in packings:
        if option is LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED:
            dag = _with_packed_placeholder(dag, packing)
        else:
            op_id, dag = _with_transform(dag, packing)
            steps, _ = shifted_steps(steps, op_id)
    after = LoopState.replay(dag, steps)
    if option is LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED:
        return LayoutRewrite(after, packings)
    for packing in packings:
        after = _parallel(after, _transform_name(packing))
    return LayoutRewrite(after, ())


def _with_packed_placeholder(dag: ComputeDAG, packing: Packing) -> ComputeDAG:
    (old,) = (op for op in dag.ops if op.name == packing.tensor_name)
    assert isinstance(old, PlaceholderOp), "layouts are free for placeholders only"
    new = replace(old, shape=packing.packed_shape)
    reader = dag.readers[old][0]
    assert isinstance(reader, ComputeOp), "only computations by elements have free layouts"
    changed = _reading(reader, packing, Tensor(old), Tensor(new))
    return respliced(dag, dag.op_ids[old], (new,), {Tensor(old): Tensor(new)}, {reader: changed})


def _with_transform(dag: ComputeDAG, packing: Packing) -> tuple[int, ComputeDAG]:
    """Return the number of the new operation, and the DAG."""
    (old,) = (op for op in dag.ops if op.name == packing.tensor_name)
    reader = dag.readers[old][0]
    assert isinstance(reader, ComputeOp), "only computations by elements have free layouts"
    transform = _transform(Tensor(old), packing, free_op_name(dag, _transform_name(packing)))
    changed = _reading(reader, packing, Tensor(old), Tensor(transform))
    op_id = dag.op_ids[reader]
    tensors = {Tensor(reader, i): Tensor(changed, i) for i in range(len(reader.dtypes))}
    return op_id, respliced(dag, op_id, (transform, changed), tensors, {})


def _transform_name(packing: Packing) -> str:
    return f"auto_scheduler_layout_transform.{packing.tensor_name}"


def _transform(tensor: Tensor, packing: Packing, name: str) -> ComputeOp:
    axes = tuple(IterVar(f"ax{i}", extent) for i, extent in enumerate(packing.packed_shape))
    indices = packing.original_indices([axis.var for axis in axes])
    body: Scalar = Load(tensor.buffer, indices)
    if packing.pads:
        body = Intrinsic(
            IF_THEN_ELSE, (_inside(indices, tensor.shape), body, _zero(tensor.dtype)), tensor.dtype
        )
    return ComputeOp(name, axes, (), (body,), None, (tensor.dtype,), (tensor,))


def _zero(dtype: DType) -> Literal:
    return Literal(value=0, dtype=dtype)


def _inside(indices: Iterable[Scalar], shape: Iterable[int]) -> Scalar:
    conditions: list[Scalar] = [
        Arith(ArithOp.LT, (index, Literal(extent, DType.INT64)))
        for index, extent in zip(indices, shape, strict=True)
    ]
    conjunction = conditions[0]
    for condition in conditions[1:]:
        conjunction = Arith(ArithOp.AND, (conjunction, condition))
    return conjunction


def _reading(reader: ComputeOp, packing: Packing, old: Tensor, new: Tensor) -> ComputeOp:
    def rule(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Load) and scalar.buffer == old.buffer:
            return Load(new.buffer, packing.packed_indices(scalar.indices))
        return scalar

    listed = reader.attrs.get(LAYOUT_FREE)
    rest = tuple(name for name in listed if name != packing.tensor_name) if isinstance(listed, tuple) else ()
    return replace(
        reader,
        bodies=tuple(rewrite_scalar(body, rule) for body in reader.bodies),
        inputs=tuple(new if tensor == old else tensor for tensor in reader.inputs),
        attrs=reader.attrs.updated(**{LAYOUT_FREE: rest or None}),
    )


def _parallel(state: LoopState, name: str) -> LoopState:
    """Fuse the outer axes of a packing stage into a parallel loop: three of 5 or more, two of 3 or more."""
    stage = state.stage_id(name)
    rank = len(state.stages[stage].iters)
    count = 3 if rank >= 5 else 2 if rank >= 3 else 1
    if count > 1:
        state = state.fuse(stage, range(count))
    return state.annotate(stage, 0, IteratorAnnotation.PARALLEL) if rank else state
