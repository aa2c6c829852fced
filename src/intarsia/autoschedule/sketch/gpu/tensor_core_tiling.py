"""Sketch rule for GPUs: products on tensor cores."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.autoschedule.sketch.gpu.bound_loops import with_loops_bound
from intarsia.autoschedule.sketch.sketch_rule import Children, Condition, SketchContext
from intarsia.native.gpu.schedule_stages import BLOCK_AXIS, THREAD_AXIS
from intarsia.native.gpu.tensor_cores import is_tensor_core_product
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.te import ComputeOp


@dataclass(frozen=True, slots=True)
class TensorCoreTiling:
    """Tile a product for blocks and warps, whose threads multiply on tensor cores; a sketch of its own.

    The loops of a warp's tile are tensorised: lowering replaces the product, and what follows it element by
    element, by a kernel with `mma` (`native/gpu/tensorised`). Other products of the DAG get the same tiles,
    and other stages their schedules by rule, so that the sketch ends here.

    Stage:
        C
    Before:
        Placeholder: A, B
        for i (0,64)
          for j (0,256)
            S = ...
        for i (0,64)
          for j (0,64)
            for k (0,256)
              C = ...
    After:
        Placeholder: A, B
        for i (0,64)
          for j (0,256)
            S = ...
        blockIdx.x i.0@j.0@ (None)
          threadIdx.x i.1@j.1@ (None)
            tensorize i.2 (None)
              tensorize j.2 (None)
                tensorize k (0,256)
                  C = ...
    """

    name: str = "tensor_core_tiling"

    def meets(self, _context: SketchContext, state: LoopState, stage_id: int) -> Condition:
        """Apply to products of types that tensor cores multiply, as they are declared."""
        is_met = _declared_product(state, stage_id) is not None
        return Condition.APPLY if is_met else Condition.PASS

    def apply(self, _context: SketchContext, state: LoopState, stage_id: int) -> Children:
        """Return one finished state, without the steps so far."""
        op = _declared_product(state, stage_id)
        assert op is not None, "the rule applies"
        state = LoopState.initial(state.initial_dag)
        names = [loop.name for loop in state[op.name].iters]
        rank = len(op.axes)
        outer, (row, column), reduced = names[: rank - 2], names[rank - 2 : rank], names[rank:]
        for axis in (row, column):
            state = state.split(op.name, axis, [None, None])
        levels = [[f"{axis}.{level}" for axis in (row, column)] for level in range(3)]
        state = state.reorder(op.name, [*outer, *levels[0], *levels[1], *levels[2], *reduced])
        product = state.stage_id(op.name)
        state = with_loops_bound(state, product, 0, len(outer) + 2, BLOCK_AXIS)
        state = with_loops_bound(state, product, 1, 2, THREAD_AXIS)
        for name in (*levels[2], *reduced):
            state = state.annotate(product, name, IteratorAnnotation.TENSORIZE)
        return ((state, -1),)


def _declared_product(state: LoopState, stage_id: int) -> ComputeOp | None:
    """Return the operation of a stage if it is a declared product that tensor cores compute, else None."""
    op = state.stages[stage_id].op
    is_declared = any(declared is op for declared in state.initial_dag.ops)
    return op if is_declared and isinstance(op, ComputeOp) and is_tensor_core_product(op) else None
