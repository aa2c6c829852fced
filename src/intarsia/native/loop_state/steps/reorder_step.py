"""The reorder step: another order of a stage's loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.loop_state.steps.step import TransformStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class ReorderStep(TransformStep):
    """Put the loops of a stage in order.

    Steps:
        ["RE", 1, [1, 0]]
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
        for j (0,6)
          for i (0,8)
            B = ...
        for i (0,8)
          for k (0,6)
            C = ...

    Attributes:
        after_ids: Numbers of all loops, outermost first.
    """

    after_ids: tuple[int, ...]
    code: ClassVar[str] = "RE"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops in the new order.

        Stages inside a loop stay inside it (TVM's first version moved them).
        """
        loops = state.stages[self.stage_id].iters
        if sorted(self.after_ids) != list(range(len(loops))):
            expected = f"expected each of 0 to {len(loops) - 1} once"
            raise state.step_error(self, f"found loops {list(self.after_ids)}; {expected}")
        new_ids = {iter_id: new_id for new_id, iter_id in enumerate(self.after_ids)}
        after = state.with_stage(self.stage_id, iters=tuple(loops[iter_id] for iter_id in self.after_ids))
        moved = state.attach_map.with_loops_moved(self.stage_id, new_ids.__getitem__)
        return after.with_fields(attach_map=moved)

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `s[C].reorder(C_j, C_i)`."""
        order = [names.loop(self.stage_id, iter_id) for iter_id in self.after_ids]
        names.reorder(self.stage_id, self.after_ids)
        return [f"s[{names.stage(self.stage_id)}].reorder({', '.join(order)})"]
