"""The cache_read step: stages read a copy."""

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
    """Let stages read a copy of a stage's result; the copy is a new stage after the copied one.

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
        scope_name: Storage scope of the copy, such as "local" or "shared"; part of its name.
        reader_stage_ids: Numbers of the stages that read the copy.
    """

    scope_name: str
    reader_stage_ids: tuple[int, ...]
    code: ClassVar[str] = "CHR"
    adds_stage: ClassVar[bool] = True

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops with the copy as a new stage; the numbers of later stages grow by 1."""
        readers = [self._reader(state, reader) for reader in self.reader_stage_ids]
        if not readers or len(set(readers)) != len(readers):
            raise state.step_error(
                self, f"found readers {list(self.reader_stage_ids)}; expected one, or several once"
            )
        dag = cache_read(state.current_dag, self.stage_id, self.scope_name, readers)
        return with_new_stage(state, dag, self.stage_id + 1)

    def _reader(self, state: LoopPreview, reader: int) -> Operation:
        op = state.stages[self.stage_id].op
        readers = state.current_dag.readers[op]
        if not (0 <= reader < len(state.stages) and state.stages[reader].op in readers):
            names = ", ".join(op.name for op in readers) or "none"
            raise state.step_error(
                self, f"found reader {reader}; the stages that read {op.name} are: {names}"
            )
        reader_op = state.stages[reader].op
        if isinstance(reader_op, ExternOp):
            raise state.step_error(self, f"reader {reader_op.name} is written by a statement of its own")
        return reader_op

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `B_shared = s.cache_read(B, "shared", [C])`, and its axes."""
        source = names.stage(self.stage_id)
        readers = ", ".join(names.stage(stage_id) for stage_id in self.reader_stage_ids)
        copy = names.insert(self.stage_id + 1)
        call = f'{copy} = s.cache_read({source}, "{self.scope_name}", [{readers}])'
        return [call, names.axes_line(self.stage_id + 1, with_reduction=False)]
