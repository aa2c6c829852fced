"""The storage_align step: strides of a result that avoid conflicts in caches or memory banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.loop_state.steps.lookup import loop_of
from intarsia.native.loop_state.steps.step import TransformStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class StorageAlignStep(TransformStep):
    """Align the stride of an axis of a stage's result: stride = k * factor + offset elements.

    Steps:
        ["SA", 1, 0, 8, 1]
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
        B storage_offset: 1
        for i (0,8)
          for j (0,6)
            B = ...
        for i (0,8)
          for k (0,6)
            C = ...

    Attributes:
        iter_id: Number of the axis.
        factor: Factor of which the stride is a multiple, in elements.
        offset: Offset added to the stride, in elements.
    """

    iter_id: int
    factor: int
    offset: int
    code: ClassVar[str] = "SA"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops with the offset in the stage."""
        loop_of(self, state, self.iter_id)
        if self.factor < 1 or self.offset < 0:
            expected = "expected a factor of at least 1, and an offset of at least 0"
            raise state.step_error(self, f"found factor {self.factor}, offset {self.offset}; {expected}")
        return state.with_stage(self.stage_id, storage_offset=self.offset)

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `s[C].storage_align(C_i, 32, 1)`."""
        loop = names.loop(self.stage_id, self.iter_id)
        return [f"s[{names.stage(self.stage_id)}].storage_align({loop}, {self.factor}, {self.offset})"]
