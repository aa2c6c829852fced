"""The follow_fused_split step: a split in two for a fused loop, with a product of earlier lengths."""

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
class FollowFusedSplitStep(TransformStep):
    """Split a loop in two by a product of lengths of earlier splits.

    Steps:
        ["SP", 1, 0, 8, [2], 1]
        ["FFSP", 2, 0, [0], 0, 1]
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
        src_step_ids: Indices of SplitSteps in the history.
        level: Index of the length that is taken of each split.
        factor_or_nparts: Whether the product is the extent of the inner part (True) or of the outer part.
    """

    iter_id: int
    src_step_ids: tuple[int, ...]
    level: int
    factor_or_nparts: bool
    code: ClassVar[str] = "FFSP"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops after the split in two."""
        return with_split(self, state, self.iter_id, (self.length(state),), self.factor_or_nparts)

    def length(self, state: LoopPreview) -> int | None:
        """Return the product of the sources' lengths at the level.

        Raises:
            IllegalStepError: A step of `src_step_ids` is no split, or has no such level.
        """
        sources = [source_split(self, state, step_id) for step_id in self.src_step_ids]
        for step_id, source in zip(self.src_step_ids, sources, strict=True):
            if not 0 <= self.level < len(source.lengths):
                expected = f"step {step_id} has levels 0 to {len(source.lengths) - 1}"
                raise state.step_error(self, f"found level {self.level}; {expected}")
        return product([source.lengths[self.level] for source in sources])

    def print_python(self, names: PythonNames) -> list[str]:
        """Return the calls of a split in two."""
        lengths = (self.length(names.before),)
        return split_lines(names, self.stage_id, self.iter_id, lengths, self.factor_or_nparts)
