"""A copy of what stages read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.dag.cache_read import cache_read
from intarsia.native.loop_state.steps.new_stage import with_new_stage
from intarsia.native.loop_state.steps.step import TransformStep
from intarsia.native.te.tensor import ExternOp, Operation

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class CacheReadStep(TransformStep):
    """Let stages read a copy of a stage's result; the copy is a new stage behind the one copied.

    Steps:
        ["CHR", 0, "local", [1]]
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
        for ax0 (0,8)
          for ax1 (0,6)
            A.local = ...
        for i (0,8)
          for j (0,6)
            B = ...
        for i (0,8)
          for k (0,6)
            C = ...

    Attributes:
        scope_name: Where the copy is, such as "local" or "shared"; part of its name.
        reader_stage_ids: Who reads the copy.
    """

    scope_name: str
    reader_stage_ids: tuple[int, ...]
    code: ClassVar[str] = "CHR"
    adds_stage: ClassVar[bool] = True

    def changed(self, state: LoopPreview) -> LoopPreview:
        """With the copy as a new stage behind the one copied; later stages get the next number."""
        readers = [self._reader(state, each) for each in self.reader_stage_ids]
        if not readers or len(set(readers)) != len(readers):
            raise state.refusal(
                self, f"found readers {list(self.reader_stage_ids)}; expected one, or several once"
            )
        dag = cache_read(state.current_dag, self.stage_id, self.scope_name, readers)
        return with_new_stage(state, dag, self.stage_id + 1)

    def _reader(self, state: LoopPreview, reader: int) -> Operation:
        op = state.stages[self.stage_id].op
        readers = state.current_dag.readers[op]
        if not (0 <= reader < len(state.stages) and state.stages[reader].op in readers):
            names = ", ".join(each.name for each in readers) or "none"
            raise state.refusal(self, f"found reader {reader}; the stages that read {op.name} are: {names}")
        found = state.stages[reader].op
        if isinstance(found, ExternOp):
            raise state.refusal(self, f"reader {found.name} is written by a statement of its own")
        return found

    def python(self, names: PythonNames) -> list[str]:
        """`B_shared = s.cache_read(B, "shared", [C])`, and its axes."""
        source = names.stage(self.stage_id)
        readers = ", ".join(names.stage(each) for each in self.reader_stage_ids)
        made = names.insert(self.stage_id + 1)
        call = f'{made} = s.cache_read({source}, "{self.scope_name}", [{readers}])'
        return [call, names.axes_line(self.stage_id + 1, with_reduction=False)]
