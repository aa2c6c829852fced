"""The rfactor step: a reduction of partial results, which may run in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.dag.rfactor import rfactor
from intarsia.native.loop_state.stage import Stage
from intarsia.native.loop_state.steps.factoring import factoring_of
from intarsia.native.loop_state.steps.new_stage import with_new_stage
from intarsia.native.loop_state.steps.step import TransformStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class RfactorStep(TransformStep):
    """Make a reduction loop an axis of a new stage of partial results, and reduce those.

    Steps:
        ["SP", 2, 1, 6, [3], 1]
        ["RF", 2, 1, 1]
    Before:
        Placeholder: A
        for i (0,8)
          for j (0,6)
            B = ...
        for i (0,8)
          for k.0 (0,2)
            for k.1 (0,3)
              C = ...
    After:
        Placeholder: A
        for i (0,8)
          for j (0,6)
            B = ...
        for i (0,8)
          for k_0 (0,2)
            for k_1 (0,3)
              C.rf = ...
        for i (0,8)
          for k_0_v (0,2)
            C = ...

    Attributes:
        iter_id: Number of the reduction loop.
        factor_iter_id: Index of its axis among the axes of the new stage.
    """

    iter_id: int
    factor_iter_id: int
    code: ClassVar[str] = "RF"
    adds_stage: ClassVar[bool] = True

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops with the partial results in a new stage, which takes the number.

        The loops of the old stage are its spatial axes and one reduction over the new axis. Only reduction
        loops
        may have been changed before: other changes would be lost, so they are refused.
        """
        dag = rfactor(
            state.current_dag, self.stage_id, factoring_of(self, state, self.iter_id, self.factor_iter_id)
        )
        after = with_new_stage(state, dag, self.stage_id)
        stage = Stage.of(dag.ops[self.stage_id + 1])
        return after.with_stage(
            self.stage_id + 1, iters=stage.iters, relations=(), auto_unroll_max_step=0, storage_offset=0
        )

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `C_rf = s.rfactor(C, C_k, 2)`, and the axes of both stages."""
        source, loop = names.stage(self.stage_id), names.loop(self.stage_id, self.iter_id)
        partial = names.insert(self.stage_id)
        names.refresh(self.stage_id + 1)
        call = f"{partial} = s.rfactor({source}, {loop}, {self.factor_iter_id})"
        return [call, names.axes_line(self.stage_id), names.axes_line(self.stage_id + 1)]
