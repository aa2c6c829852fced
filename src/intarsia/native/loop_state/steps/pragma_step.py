"""The pragma step: a hint for code generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from intarsia.native.loop_state.stage import ComputeAt
from intarsia.native.loop_state.steps.lookup import loop_of
from intarsia.native.loop_state.steps.step import TransformStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class PragmaStep(TransformStep):
    """Give a hint at a loop.

    Steps:
        ["PR", 2, 0, "auto_unroll_max_step$16"]
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
        C auto_unroll: 16
        for i (0,8)
          for k (0,6)
            C = ...

    Attributes:
        iter_id: Number of the loop.
        pragma_type: "auto_unroll_max_step$N" (unroll loops of at most N steps) or "debug_skip_region".
    """

    iter_id: int
    pragma_type: str
    code: ClassVar[str] = "PR"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops with the hint in the stage."""
        stage = state.stages[self.stage_id]
        if self.iter_id != 0 or stage.iters:  # a stage without loops has its hint at loop 0
            loop_of(self, state, self.iter_id)
        if self.pragma_type == SKIP_REGION:
            after = state.with_stage(self.stage_id, is_skipped=True, compute_at=ComputeAt.ROOT)
            return after.with_fields(attach_map=state.attach_map.detach(self.stage_id))
        return state.with_stage(self.stage_id, auto_unroll_max_step=self._max_step(state))

    def _max_step(self, state: LoopPreview) -> int:
        name, _, number = self.pragma_type.partition("$")
        if name != AUTO_UNROLL or not number.isdecimal():
            expected = f"expected {AUTO_UNROLL}$ and a number, or {SKIP_REGION}"
            raise state.step_error(self, f"found hint {self.pragma_type!r}; {expected}")
        return int(number)

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `s[C].pragma(C_i, "auto_unroll_max_step", 64)` and "unroll_explicit"; [] without a loop."""
        if not names.before.stages[self.stage_id].iters:
            return []
        head = f"s[{names.stage(self.stage_id)}].pragma({names.loop(self.stage_id, self.iter_id)}, "
        if self.pragma_type == SKIP_REGION:
            return [f'{head}"{SKIP_REGION}")']
        number = self.pragma_type.partition("$")[2]
        return [f'{head}"{AUTO_UNROLL}", {number})', f'{head}"unroll_explicit", True)']


AUTO_UNROLL: Final = "auto_unroll_max_step"
SKIP_REGION: Final = "debug_skip_region"
