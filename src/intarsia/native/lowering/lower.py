"""Lowering of a loop state to a loop function, and bound inference for its loops."""

from __future__ import annotations

from collections.abc import Iterable

from intarsia.ir import PrimFunc
from intarsia.ir.attributes import Attrs
from intarsia.ir.prim_func import Allocate, Block, Statement
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state.iterator import Range
from intarsia.native.loop_state.state import LoopState
from intarsia.native.lowering.element_store import block
from intarsia.native.lowering.placements import Placements, find_placements, note_placements
from intarsia.native.lowering.stage_nest import StageNests
from intarsia.native.lowering.thread_sharing import as_kernels
from intarsia.native.lowering.unlowered import has_bound_loops, refuse_unlowered
from intarsia.support.errors import UsageError
from intarsia.support.free_names import NameSupply


def lower(dag: ComputeDAG, state: LoopState) -> PrimFunc:
    """Return the loop function of a state: the same results as `lower_naive`, up to the order of sums.

    Its parameters are the DAG's placeholders in their order, then its outputs. A stage inside a loop has a
    tile of its tensor, allocated in that loop. A split that leaves a rest, or a window that reaches beyond a
    tensor, is guarded by an IfThenElse in the outermost loop where it is decided. Loops of extent 1 are left
    out. Loops that must run in order or cannot be nested are serial, whatever their annotation: reductions
    and mixed loops that are parallel or vectorised, parallel loops inside parallel or vectorised ones. The
    attribute `auto_unroll_max_step` is the largest of the hints of that name.

    If a loop is bound to blockIdx.x or threadIdx.x, each stage outside of all loops becomes a GPU kernel
    (`thread_sharing`): a stage that is attached inside loops and has a loop over threads is computed once for
    all threads of the block.

    Args:
        dag: DAG before any step.
        state: State with all split lengths chosen; if it has no stages, its history is replayed on the DAG.

    Raises:
        UsageError: A length is not chosen, a stage is computed where those that read it cannot see it, a loop
            is bound to another axis or is a reduction, or storage is aligned.
    """
    staged = _with_stages(dag, state)
    refuse_unlowered(staged)
    placements = find_placements(staged)
    params = (*dag.placeholders, *dag.outputs)
    names = NameSupply(buffer.name for stage in staged.stages for buffer in stage.op.buffers)
    body = _body(staged, placements, names, {tensor.buffer.name for tensor in params})
    hints = [stage.auto_unroll_max_step for stage in staged.stages if stage.auto_unroll_max_step]
    attrs = Attrs({"auto_unroll_max_step": max(hints)} if hints else {})
    return PrimFunc(tuple(tensor.buffer for tensor in params), body, attrs)


def infer_bound(dag: ComputeDAG, state: LoopState) -> LoopState:
    """Return the state with the ranges of all loops; itself if it has them.

    The loops of a stage inside a loop range over its tile, from 0.

    Raises:
        UsageError: As `lower`.
    """
    staged = _with_stages(dag, state)
    placements = find_placements(staged)
    ranges = {
        stage_id: [Range(0, loop.extent) for loop in placement.loops]
        for stage_id, placement in placements.by_stage.items()
    }
    ranged = staged.with_ranges(ranges)
    note_placements(ranged, placements)
    return ranged


def infer_bounds(dag: ComputeDAG, states: Iterable[LoopState]) -> tuple[LoopState | UsageError, ...]:
    """Infer the bounds of many states; a state that fails gives its error instead."""
    return tuple(_infer_or_error(dag, state) for state in states)


def _infer_or_error(dag: ComputeDAG, state: LoopState) -> LoopState | UsageError:
    try:
        return infer_bound(dag, state)
    except UsageError as error:
        return error


def _with_stages(dag: ComputeDAG, state: LoopState) -> LoopState:
    return state if state.stages else LoopState.replay(dag, state.transform_steps)


_NOTHING = Block(())


def _body(state: LoopState, placements: Placements, names: NameSupply, params: set[str]) -> Statement:
    nests = StageNests(state, placements, names)
    is_for_gpu = has_bound_loops(state)
    body: Statement = Block(())
    for stage_id in reversed(range(len(state.stages))):
        placement = placements.by_stage.get(stage_id)
        if placement is None or placement.around.path:
            continue
        nest = nests.statement(stage_id)
        body = block((as_kernels(nest) if is_for_gpu and nest != _NOTHING else nest, body))
        for buffer in reversed(placement.buffers):
            if buffer.name not in params:
                body = Allocate(buffer, body)
    return body
