"""The compute_inline step: a stage inside the expressions that read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.loop_state.stage import ComputeAt
from intarsia.native.loop_state.steps.lookup import movable_stage
from intarsia.native.loop_state.steps.step import TransformStep
from intarsia.native.te.tensor import ComputeOp

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class ComputeInlineStep(TransformStep):
    """Compute each element of a stage where it is read, without a buffer.

    Steps:
        ["CI", 1]
    Before:
        Placeholder: A
        for i (0,8)
          for j (0,6)
            B = ...
        for i (0,8)
          for k (0,6)
            C = ...
    After:
        Placeholder: A
        for i (0,8)
          for k (0,6)
            C = ...
    """

    code: ClassVar[str] = "CI"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops without those of the stage."""
        stage = movable_stage(self, state)
        if isinstance(stage.op, ComputeOp) and stage.op.combiner is not None:
            raise state.step_error(
                self, "the stage is a reduction; expected one that computes element by element"
            )
        if state.current_dag.is_output(stage.op):
            raise state.step_error(
                self, "the stage is a result, which needs a buffer: expected another stage"
            )
        inside = [
            inner for inner, (target, _) in state.attach_map.positions.items() if target == self.stage_id
        ]
        if inside:
            names = ", ".join(state.stages[inner].op.name for inner in sorted(inside))
            raise state.step_error(self, f"stages are inside its loops: {names}")
        after = state.with_stage(self.stage_id, compute_at=ComputeAt.INLINED)
        return after.with_fields(attach_map=state.attach_map.detach(self.stage_id))

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `s[B].compute_inline()`."""
        return [f"s[{names.stage(self.stage_id)}].compute_inline()"]
