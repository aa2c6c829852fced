"""The cache_write step: a stage is computed in a cache and copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.dag.cache_write import cache_write
from intarsia.native.loop_state.stage import Stage
from intarsia.native.loop_state.steps.lookup import untouched_stage
from intarsia.native.loop_state.steps.new_stage import with_new_stage
from intarsia.native.loop_state.steps.step import TransformStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class CacheWriteStep(TransformStep):
    """Compute a stage in a new stage before it, and copy from there.

    Steps:
        ["CHW", 2, "local"]
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
          for j (0,6)
            B = ...
        for i_c (0,8)
          for k (0,6)
            C.local = ...
        for i (0,8)
          C = ...

    Attributes:
        scope_name: Storage scope of the new stage, such as "local"; part of its name.
    """

    scope_name: str
    code: ClassVar[str] = "CHW"
    adds_stage: ClassVar[bool] = True

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops with the computation in a new stage, which takes the number.

        TVM's first version made two stages of an operation with two results, and silently lost earlier steps
        of the stage; here it is one stage, and such steps are refused.
        """
        stage = untouched_stage(self, state)
        dag = cache_write(state.current_dag, self.stage_id, self.scope_name)
        after = with_new_stage(state, dag, self.stage_id)
        return after.with_stage(
            self.stage_id + 1, iters=Stage.of(dag.ops[self.stage_id + 1]).iters, compute_at=stage.compute_at
        )

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `C_local, = s.cache_write([C], "local")`, and its axes."""
        source = names.stage(self.stage_id)
        cache = names.insert(self.stage_id)
        names.refresh(self.stage_id + 1)
        call = f'{cache}, = s.cache_write([{source}], "{self.scope_name}")'
        return [call, names.axes_line(self.stage_id)]
