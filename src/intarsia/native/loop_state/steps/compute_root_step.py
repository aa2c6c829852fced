"""The compute_root step: a stage outside all loops of other stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.loop_state.stage import ComputeAt
from intarsia.native.loop_state.steps.lookup import movable_stage, without_ranges
from intarsia.native.loop_state.steps.step import TransformStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class ComputeRootStep(TransformStep):
    """Compute the whole stage before the stages that read it.

    Steps:
        ["CA", 1, 2, 0]
        ["CR", 1]
    Before:
        Placeholder: A
        for i (0,8)
          for i (None)
            for j (None)
              B = ...
          for k (0,6)
            C = ...
    After:
        Placeholder: A
        for i (None)
          for j (None)
            B = ...
        for i (0,8)
          for k (0,6)
            C = ...
    """

    code: ClassVar[str] = "CR"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops with the stage outside all others; bound inference must find its ranges again."""
        stage = movable_stage(self, state)
        after = state.with_stage(self.stage_id, iters=without_ranges(stage.iters), compute_at=ComputeAt.ROOT)
        return after.with_fields(attach_map=state.attach_map.detach(self.stage_id))

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `s[B].compute_root()`."""
        return [f"s[{names.stage(self.stage_id)}].compute_root()"]
