"""The follow_split step: a split with the lengths of an earlier one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.loop_state.steps.source_split import source_split
from intarsia.native.loop_state.steps.splitting import product, split_lines, with_split
from intarsia.native.loop_state.steps.step import TransformStep

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class FollowSplitStep(TransformStep):
    """Split a loop into `n_split` + 1 parts as an earlier split did.

    Steps:
        ["SP", 1, 0, 8, [2], 1]
        ["FSP", 2, 0, 0, 1]
    Before:
        Placeholder: A
        for i.0 (0,4)
          for i.1 (0,2)
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
        for i.0 (0,4)
          for i.1 (0,2)
            for k (0,6)
              C = ...

    Attributes:
        iter_id: Number of the loop.
        src_step_id: Index of a SplitStep in the history.
        n_split: Number of lengths; the last is the product of all remaining lengths of the source.
    """

    iter_id: int
    src_step_id: int
    n_split: int
    code: ClassVar[str] = "FSP"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops after a split with the lengths of the source."""
        return with_split(self, state, self.iter_id, self.lengths(state), inner_to_outer=True)

    def lengths(self, state: LoopPreview) -> tuple[int | None, ...]:
        """Return the lengths, from the history.

        Raises:
            IllegalStepError: The source is no split, or has too few lengths.
        """
        source = source_split(self, state, self.src_step_id).lengths
        if not 1 <= self.n_split <= len(source) + 1:
            expected = f"expected 1 to {len(source) + 1}, as step {self.src_step_id} has {len(source)}"
            raise state.step_error(self, f"found {self.n_split} as the number of lengths; {expected}")
        kept, rest = source[: self.n_split - 1], source[self.n_split - 1 :]
        return (*kept, product(rest))

    def print_python(self, names: PythonNames) -> list[str]:
        """Return the calls of a split with the lengths of the source."""
        lengths = self.lengths(names.before)
        return split_lines(names, self.stage_id, self.iter_id, lengths, inner_to_outer=True)
