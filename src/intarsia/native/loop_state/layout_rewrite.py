"""States that read packed placeholders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic, Literal, Load, Scalar
from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.op_attrs import LAYOUT_FREE
from intarsia.native.dag.respliced import free_op_name, respliced
from intarsia.native.dag.rewrite_scalar import rewrite_scalar
from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.loop_state.loop_layout import loop_layouts
from intarsia.native.loop_state.shifted_steps import shifted_steps
from intarsia.native.loop_state.state import LoopState
from intarsia.native.packing import Packing
from intarsia.native.te.functions import IF_THEN_ELSE
from intarsia.native.te.iter_var import IterVar
from intarsia.native.te.tensor import ComputeOp, PlaceholderOp, Tensor


class LayoutRewriteOption(IntEnum):
    """What happens to the layouts of placeholders that are free; the numbers are those of the v0.6 log."""

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2


@dataclass(frozen=True, slots=True)
class LayoutRewrite:
    """A state over another DAG that computes the same.

    Attributes:
        state: With `initial_dag` as the other DAG, and a history that fits it.
        packings: How the caller has to pack what it passes; () if stages of the state do it.
    """

    state: LoopState
    packings: tuple[Packing, ...]


def rewrite_layout(state: LoopState, option: LayoutRewriteOption) -> LayoutRewrite:
    """Let a state read the placeholders listed as `layout_free_placeholders` in the order of its loops.

    INSERT_TRANSFORM_STAGE adds a stage that packs, before the one that reads; it is parallel over its outer
    axes. REWRITE_FOR_PRE_TRANSFORMED gives the placeholder the packed shape.

    Args:
        state: With the ranges of all loops.
        option: Which.
    """
    packings = loop_layouts(state) if option is not LayoutRewriteOption.NO_REWRITE else ()
    if not packings:
        return LayoutRewrite(state, ())
    dag, steps = state.initial_dag, state.transform_steps
    for packing in packings:
        if option is LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED:
            dag = _with_packed_placeholder(dag, packing)
        else:
            place, dag = _with_transform(dag, packing)
            steps, _ = shifted_steps(steps, place)
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
    """The place of the new operation, and the DAG."""
    (old,) = (op for op in dag.ops if op.name == packing.tensor_name)
    reader = dag.readers[old][0]
    assert isinstance(reader, ComputeOp), "only computations by elements have free layouts"
    transform = _transform(Tensor(old), packing, free_op_name(dag, _transform_name(packing)))
    changed = _reading(reader, packing, Tensor(old), Tensor(transform))
    place = dag.op_ids[reader]
    tensors = {Tensor(reader, i): Tensor(changed, i) for i in range(len(reader.dtypes))}
    return place, respliced(dag, place, (transform, changed), tensors, {})


def _transform_name(packing: Packing) -> str:
    return f"auto_scheduler_layout_transform.{packing.tensor_name}"


def _transform(tensor: Tensor, packing: Packing, name: str) -> ComputeOp:
    axes = tuple(IterVar(f"ax{i}", extent) for i, extent in enumerate(packing.packed_shape))
    places = packing.original_indices([axis.var for axis in axes])
    body: Scalar = Load(tensor.buffer, places)
    if packing.pads:
        body = Intrinsic(
            IF_THEN_ELSE, (_inside(places, tensor.shape), body, _zero(tensor.dtype)), tensor.dtype
        )
    return ComputeOp(name, axes, (), (body,), None, (tensor.dtype,), (tensor,))


def _zero(dtype: DType) -> Literal:
    return Literal(value=0, dtype=dtype)


def _inside(indices: Iterable[Scalar], shape: Iterable[int]) -> Scalar:
    conditions: list[Scalar] = [
        Arith(ArithOp.LT, (index, Literal(extent, DType.INT64)))
        for index, extent in zip(indices, shape, strict=True)
    ]
    found = conditions[0]
    for each in conditions[1:]:
        found = Arith(ArithOp.AND, (found, each))
    return found


def _reading(reader: ComputeOp, packing: Packing, old: Tensor, new: Tensor) -> ComputeOp:
    def rule(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Load) and scalar.buffer == old.buffer:
            return Load(new.buffer, packing.packed_indices(scalar.indices))
        return scalar

    listed = reader.attrs.get(LAYOUT_FREE)
    rest = tuple(each for each in listed if each != packing.tensor_name) if isinstance(listed, tuple) else ()
    return replace(
        reader,
        bodies=tuple(rewrite_scalar(body, rule) for body in reader.bodies),
        inputs=tuple(new if tensor == old else tensor for tensor in reader.inputs),
        attrs=reader.attrs.updated(**{LAYOUT_FREE: rest or None}),
    )


def _parallel(state: LoopState, name: str) -> LoopState:
    """The outer axes of a packing stage as one parallel loop: three of five or more, two of three or more."""
    stage = state.stage_id(name)
    rank = len(state.stages[stage].iters)
    count = 3 if rank >= 5 else 2 if rank >= 3 else 1
    if count > 1:
        state = state.fuse(stage, range(count))
    return state.annotate(stage, 0, IteratorAnnotation.PARALLEL) if rank else state
