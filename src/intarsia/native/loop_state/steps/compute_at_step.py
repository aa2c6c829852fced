"""The compute_at step: a stage inside a loop of another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.loop_state.stage import ComputeAt, Stage
from intarsia.native.loop_state.steps.lookup import movable_stage, without_ranges
from intarsia.native.loop_state.steps.step import TransformStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class ComputeAtStep(TransformStep):
    """Compute a stage inside a loop of a stage that reads it, as much of it as an iteration needs.

    Steps:
        ["CA", 1, 2, 0]
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
          for i (None)
            for j (None)
              B = ...
          for k (0,6)
            C = ...

    Attributes:
        target_stage_id: Number of the stage that has the loop.
        target_iter_id: Number of the loop.
    """

    target_stage_id: int
    target_iter_id: int
    code: ClassVar[str] = "CA"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops with the stage inside the loop; bound inference must find its ranges again."""
        stage = movable_stage(self, state)
        target = self._target(state)
        if state.current_dag.is_output(stage.op):
            raise state.step_error(
                self, "the stage is a result, which is computed whole: expected another stage"
            )
        if not 0 <= self.target_iter_id < len(target.iters):
            loops_text = f"stage {target.op.name} has {len(target.iters)} loops"
            raise state.step_error(self, f"found loop {self.target_iter_id}; {loops_text}")
        after = state.with_stage(self.stage_id, iters=without_ranges(stage.iters), compute_at=ComputeAt.ITER)
        attach_map = state.attach_map.attach(self.stage_id, self.target_stage_id, self.target_iter_id)
        return after.with_fields(attach_map=attach_map)

    def _target(self, state: LoopPreview) -> Stage:
        if not 0 <= self.target_stage_id < len(state.stages):
            stages_text = f"there are stages 0 to {len(state.stages) - 1}"
            raise state.step_error(self, f"found target {self.target_stage_id}; {stages_text}")
        target = state.stages[self.target_stage_id]
        if target.compute_at is ComputeAt.INLINED:
            raise state.step_error(self, f"target {target.op.name} is inlined, it has no loops")
        above: int | None = self.target_stage_id
        while above is not None:
            if above == self.stage_id:
                raise state.step_error(
                    self, f"target {target.op.name} is the stage itself, or inside its loops"
                )
            above = state.attach_map.positions.get(above, (None, 0))[0]
        return target

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `s[B].compute_at(s[C], C_i)`."""
        loop = names.loop(self.target_stage_id, self.target_iter_id)
        target = names.stage(self.target_stage_id)
        return [f"s[{names.stage(self.stage_id)}].compute_at(s[{target}], {loop})"]
