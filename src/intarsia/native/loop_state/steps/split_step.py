"""The split step: one loop becomes several nested loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.loop_state.steps.splitting import split_lines, with_split
from intarsia.native.loop_state.steps.step import TransformStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class SplitStep(TransformStep):
    """Split a loop.

    Steps:
        ["SP", 1, 0, 8, [2], 1]
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
        for i.0 (0,4)
          for i.1 (0,2)
            for j (0,6)
              B = ...
        for i (0,8)
          for k (0,6)
            C = ...

    Attributes:
        iter_id: Number of the loop.
        extent: Extent of the loop when the step was recorded, or None if unknown; applying does not need it.
        lengths: Lengths of all parts but one, outermost first; None for a length that is not chosen yet.
        inner_to_outer: Whether the computed length is that of the outermost part (True) or of the innermost
            part.
    """

    iter_id: int
    extent: int | None
    lengths: tuple[int | None, ...]
    inner_to_outer: bool = True
    code: ClassVar[str] = "SP"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops after the split; stages inside the loop are inside the innermost part."""
        return with_split(self, state, self.iter_id, self.lengths, self.inner_to_outer)

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `C_i_o, C_i_i = s[C].split(C_i, factor=16)`, a line for each length."""
        return split_lines(names, self.stage_id, self.iter_id, self.lengths, self.inner_to_outer)
