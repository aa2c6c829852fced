"""The annotation step: unroll, vectorize, parallelize or bind a loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.loop_state.steps.lookup import loop_of
from intarsia.native.loop_state.steps.step import TransformStep
from intarsia.native.te.iter_var import IterKind

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class AnnotationStep(TransformStep):
    """Annotate a loop.

    Steps:
        ["AN", 1, 0, 3]
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
        parallel i (0,8)
          for j (0,6)
            B = ...
        for i (0,8)
          for k (0,6)
            C = ...

    Attributes:
        iter_id: Number of the loop.
        annotation: Execution mode of the loop.
    """

    iter_id: int
    annotation: IteratorAnnotation
    code: ClassVar[str] = "AN"

    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops with the annotation."""
        loop = loop_of(self, state, self.iter_id)
        if loop.annotation is not IteratorAnnotation.NONE:
            raise state.step_error(self, f"loop {loop.name} is already annotated {loop.annotation.keyword}")
        needs_order = loop.kind is not IterKind.SPATIAL
        if needs_order and self.annotation in (IteratorAnnotation.PARALLEL, IteratorAnnotation.VECTORIZE):
            text = f"loop {loop.name} reduces, so that its iterations write the same element"
            raise state.step_error(self, f"{text}: expected a spatial loop for {self.annotation.keyword}")
        loops = list(state.stages[self.stage_id].iters)
        loops[self.iter_id] = replace(loop, annotation=self.annotation)
        return state.with_stage(self.stage_id, iters=tuple(loops))

    def print_python(self, names: PythonNames) -> list[str]:
        """Return `s[C].parallel(C_i)`, or `s[C].bind(C_i, te.thread_axis("threadIdx.x"))`."""
        stage, loop = names.stage(self.stage_id), names.loop(self.stage_id, self.iter_id)
        keyword = self.annotation.keyword
        if self.annotation.is_thread:
            return [f's[{stage}].bind({loop}, te.thread_axis("{keyword}"))']
        return [f"s[{stage}].{keyword}({loop})"]
