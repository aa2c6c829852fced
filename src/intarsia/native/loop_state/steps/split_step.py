"""One loop as several, one inside the other."""

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
        iter_id: The loop.
        extent: Its extent when the step was made, or None if that was not known; applying does not need it.
        lengths: Of all parts but one, outermost first; None is a length that is not chosen yet.
        inner_to_outer: Whether the length that follows from the others is the outermost or the innermost one.
    """

    iter_id: int
    extent: int | None
    lengths: tuple[int | None, ...]
    inner_to_outer: bool = True
    code: ClassVar[str] = "SP"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """With the loop as several; what stood inside it stands inside the innermost of them."""
        return with_split(self, state, self.iter_id, self.lengths, self.inner_to_outer)

    def python(self, names: PythonNames) -> list[str]:
        """`C_i_o, C_i_i = s[C].split(C_i, factor=16)`, a line for each length."""
        return split_lines(names, self.stage_id, self.iter_id, self.lengths, self.inner_to_outer)
