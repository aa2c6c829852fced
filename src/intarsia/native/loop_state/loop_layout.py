"""Layouts of placeholders in which a state's loops read consecutive elements."""

from __future__ import annotations

import math
from collections.abc import Iterator as Iteration
from collections.abc import Mapping

from intarsia.ir.prim_func import Literal, LoopVar, Scalar
from intarsia.native.dag.access import AccessAnalyzer
from intarsia.native.dag.loop_name import loop_name
from intarsia.native.loop_state.iterator import Iterator
from intarsia.native.loop_state.relation import SplitRelation
from intarsia.native.loop_state.stage import ComputeAt, Stage
from intarsia.native.loop_state.state import LoopState
from intarsia.native.packing import Packing, Part
from intarsia.native.te.op_attrs import LAYOUT_FREE
from intarsia.native.te.tensor import ComputeOp, Operation, PlaceholderOp


def loop_layouts(state: LoopState) -> tuple[Packing, ...]:
    """Return a packing for each placeholder whose layout is free and should change.

    Only placeholders that one operation reads, once, at plain axes or 0 are packed; also through an inlined
    elementwise stage such as a cast.

    Args:
        state: State with the ranges of all loops; a loop without a range counts as one iteration.
    """
    analyzer = AccessAnalyzer(state.current_dag)
    packings = []
    for stage_id, stage in enumerate(state.stages):
        if not isinstance(stage.op, ComputeOp):
            continue
        listed = _listed(stage.op)
        for producer, reads in analyzer.read_from[stage.op].items() if listed else ():
            is_sole = state.current_dag.readers[producer] == (stage.op,) and len(reads) == 1
            free = _free_placeholder(producer, listed, state, analyzer) if is_sole else None
            if free is not None:
                packing = _packing(state, stage_id, free.name, free.buffers[0].shape, reads[0])
                packings += [packing] if packing is not None and not packing.keeps_layout else []
    return tuple(packings)


def _free_placeholder(
    op: Operation, listed: tuple[object, ...], state: LoopState, analyzer: AccessAnalyzer
) -> PlaceholderOp | None:
    """Return the listed placeholder that `op` is, or that it reads elementwise as an inlined stage."""
    if isinstance(op, PlaceholderOp):
        return op if op.name in listed else None
    is_inlined = state[op.name].compute_at is ComputeAt.INLINED
    if not isinstance(op, ComputeOp) or op.combiner is not None or not is_inlined:
        return None
    identity = tuple(axis.var for axis in op.axes)
    for producer, reads in analyzer.read_from[op].items():
        is_sole = analyzer.dag.readers[producer] == (op,) and list(reads) == [identity]
        if isinstance(producer, PlaceholderOp) and producer.name in listed and is_sole:
            return producer
    return None


def _listed(op: ComputeOp) -> tuple[object, ...]:
    listed = op.attrs.get(LAYOUT_FREE, ())
    return listed if isinstance(listed, tuple) else (listed,)


def _packing(
    state: LoopState, stage_id: int, name: str, shape: tuple[int, ...], indices: tuple[Scalar, ...]
) -> Packing | None:
    plain = [index for index in indices if isinstance(index, LoopVar)]
    if len(set(plain)) < len(plain) or not all(isinstance(index, LoopVar | Literal) for index in indices):
        return None
    dims = {index.name: dim for dim, index in enumerate(indices) if isinstance(index, LoopVar)}
    dims = {loop_name(axis): dim for axis, dim in dims.items()}
    parts = [Part(dims[axis], extent) for axis, extent in _axis_loops(state, stage_id) if axis in dims]
    for dim, extent in reversed(list(enumerate(shape))):
        covered = math.prod(part.extent for part in parts if part.axis == dim)
        if covered < extent or not any(part.axis == dim for part in parts):
            parts.insert(0, Part(dim, -(-extent // max(covered, 1))))
    return Packing(name, shape, tuple(parts))


def _axis_loops(state: LoopState, stage_id: int) -> Iteration[tuple[str, int]]:
    """Yield the extent of each loop around a stage's computation, with the stage's axis that it is a part of.

    Loops of the stage that it is attached to count if both have the same shape, as a cache stage and its
    copy.
    """
    stage = state.stages[stage_id]
    position = state.attach_map.positions.get(stage_id)
    if position is not None:
        target, op = state.stages[position[0]], stage.op
        if isinstance(target.op, ComputeOp) and isinstance(op, ComputeOp) and target.op.shape == op.shape:
            axis_names = {
                loop_name(there.name): loop_name(here.name)
                for there, here in zip(target.op.axes, op.axes, strict=True)
            }
            outer_loops = _parts(target, target.iters[: position[1] + 1])
            yield from ((axis_names[axis], extent) for axis, extent in outer_loops if axis in axis_names)
    yield from _parts(stage, stage.iters)


def _parts(stage: Stage, loops: tuple[Iterator, ...]) -> Iteration[tuple[str, int]]:
    parents = {
        part: relation.parent
        for relation in stage.relations
        if isinstance(relation, SplitRelation)
        for part in relation.parts
    }
    for loop in loops:
        for part in _unfused(loop):
            yield _root(part.name, parents), 1 if part.extent is None else part.extent


def _unfused(loop: Iterator) -> Iteration[Iterator]:
    if loop.orig_iters:
        for part in loop.orig_iters:
            yield from _unfused(part)
    else:
        yield loop


def _root(name: str, parents: Mapping[str, str]) -> str:
    while name in parents:
        name = parents[name]
    return name
