"""The loops of a DAG, and the steps that led to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state.attach_map import AttachMap
from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.loop_state.loop_preview import IterRef, LoopPreview, StageRef
from intarsia.native.loop_state.stage import Stage
from intarsia.native.loop_state.steps import (
    AnnotationStep,
    CacheReadStep,
    CacheWriteStep,
    ComputeAtStep,
    ComputeInlineStep,
    ComputeRootStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    PragmaStep,
    ReorderStep,
    RfactorStep,
    SplitStep,
    StorageAlignStep,
    TransformStep,
)
from intarsia.support.errors import UsageError


@dataclass(frozen=True, eq=False)
class LoopState(LoopPreview):
    """A preview of the loops, with its history; immutable (seed ansor_minimum).

    Methods named like steps return the next state, and raise IllegalStepError if the step is not possible:

        state = (
            LoopState.initial(dag).split(C, "i", [16]).split(C, "j", [8])
            .reorder(C, ["i.0", "j.0", "k", "j.1", "i.1"]).fuse(C, ["i.0", "j.0"])
        )

    Attributes:
        transform_steps: The history; applied to `LoopState.initial(initial_dag)` it gives this state.
    """

    transform_steps: tuple[TransformStep, ...]

    @classmethod
    def initial(cls, dag: ComputeDAG) -> LoopState:
        """Return the loops as declared: each operation on its own, spatial axes around reduction axes."""
        return cls(dag, tuple(map(Stage.of, dag.ops)), (), AttachMap(), dag)

    @classmethod
    def replay(cls, dag: ComputeDAG, steps: Iterable[TransformStep]) -> LoopState:
        """Return the state after a history.

        Raises:
            IllegalStepError: A step is not possible.
        """
        state = cls.initial(dag)
        for step in steps:
            state = state.apply(step)
        return state

    def apply(self, step: TransformStep) -> LoopState:
        """Return the state after one more step.

        Raises:
            IllegalStepError: The step is not possible; the message has the step and the reason.
        """
        if not 0 <= step.stage_id < len(self.stages):
            stages_text = f"there are stages 0 to {len(self.stages) - 1}"
            raise self.step_error(step, f"found stage {step.stage_id}; {stages_text}")
        after = step.changed(self)
        steps = (*self.transform_steps, step)
        return LoopState(
            *(after.initial_dag, after.stages, steps, after.attach_map, after.current_dag, after.concrete)
        )

    def annotate(self, stage: StageRef, loop: IterRef, annotation: IteratorAnnotation) -> LoopState:
        """Annotate a loop."""
        return self.apply(AnnotationStep(self.stage_id(stage), self.iter_id(stage, loop), annotation))

    def unroll(self, stage: StageRef, loop: IterRef, max_unroll: int | None = None) -> LoopState:
        """Unroll a loop; the same state if its extent exceeds `max_unroll`."""
        extent = self[stage].iters[self.iter_id(stage, loop)].extent
        if max_unroll is not None and extent is not None and extent > max_unroll:
            return self
        return self.annotate(stage, loop, IteratorAnnotation.UNROLL)

    def parallel(self, stage: StageRef, loop: IterRef) -> LoopState:
        """Run a loop on several threads."""
        return self.annotate(stage, loop, IteratorAnnotation.PARALLEL)

    def vectorize(self, stage: StageRef, loop: IterRef) -> LoopState:
        """Run a loop with vector instructions."""
        return self.annotate(stage, loop, IteratorAnnotation.VECTORIZE)

    def bind(self, stage: StageRef, loop: IterRef, thread_name: str) -> LoopState:
        """Bind a loop to an axis of the thread grid: "blockIdx.x", "threadIdx.y", "vthread" ...

        Raises:
            UsageError: There is no such axis.
        """
        names = {annotation.keyword: annotation for annotation in IteratorAnnotation if annotation.is_thread}
        if thread_name not in names:
            raise UsageError(f"there is no thread axis {thread_name}; there are {', '.join(names)}")
        return self.annotate(stage, loop, names[thread_name])

    def fuse(self, stage: StageRef, loops: Sequence[IterRef]) -> LoopState:
        """Fuse neighbouring loops into one."""
        ids = sorted(self.iter_id(stage, loop) for loop in loops)
        return self.apply(FuseStep(self.stage_id(stage), tuple(ids)))

    def pragma(self, stage: StageRef, loop: IterRef, pragma_type: str) -> LoopState:
        """Add a pragma to a loop: "auto_unroll_max_step$64"."""
        return self.apply(PragmaStep(self.stage_id(stage), self.iter_id(stage, loop), pragma_type))

    def reorder(self, stage: StageRef, order: Sequence[IterRef]) -> LoopState:
        """Reorder all loops of a stage."""
        ids = tuple(self.iter_id(stage, loop) for loop in order)
        return self.apply(ReorderStep(self.stage_id(stage), ids))

    def split(
        self, stage: StageRef, loop: IterRef, lengths: Sequence[int | None], inner_to_outer: bool = True
    ) -> LoopState:
        """Split a loop into `len(lengths) + 1` loops, which have its name with .0, .1 ...

        Args:
            stage: The stage.
            loop: The loop.
            lengths: Lengths of all parts but the outermost, outermost first; None leaves a length open.
            inner_to_outer: False if `lengths` are those of all parts but the innermost.
        """
        stage_id, iter_id = self.stage_id(stage), self.iter_id(stage, loop)
        loops = self[stage].iters
        extent = loops[iter_id].extent if 0 <= iter_id < len(loops) else None
        return self.apply(SplitStep(stage_id, iter_id, extent or None, tuple(lengths), inner_to_outer))

    def follow_split(self, stage: StageRef, loop: IterRef, src_step_id: int, n_split: int) -> LoopState:
        """Split a loop as an earlier step of the history, into `n_split` + 1 parts."""
        step = FollowSplitStep(self.stage_id(stage), self.iter_id(stage, loop), src_step_id, n_split)
        return self.apply(step)

    def follow_fused_split(
        self,
        stage: StageRef,
        loop: IterRef,
        src_step_ids: Sequence[int],
        level: int,
        factor_or_nparts: bool,
    ) -> LoopState:
        """Split a loop in two by the product of one length of each of several earlier splits."""
        ids = self.stage_id(stage), self.iter_id(stage, loop)
        return self.apply(FollowFusedSplitStep(*ids, tuple(src_step_ids), level, factor_or_nparts))

    def storage_align(self, stage: StageRef, loop: IterRef, factor: int, offset: int) -> LoopState:
        """Align the stride of an axis of the result to a multiple of `factor` plus `offset` elements."""
        step = StorageAlignStep(self.stage_id(stage), self.iter_id(stage, loop), factor, offset)
        return self.apply(step)

    def compute_at(self, stage: StageRef, target: StageRef, loop: IterRef) -> LoopState:
        """Compute a stage inside a loop of another one."""
        target_ids = self.stage_id(target), self.iter_id(target, loop)
        return self.apply(ComputeAtStep(self.stage_id(stage), *target_ids))

    def compute_inline(self, stage: StageRef) -> LoopState:
        """Inline a stage into the expressions that read it."""
        return self.apply(ComputeInlineStep(self.stage_id(stage)))

    def compute_root(self, stage: StageRef) -> LoopState:
        """Compute a stage outside all loops of other stages."""
        return self.apply(ComputeRootStep(self.stage_id(stage)))

    def cache_read(self, stage: StageRef, scope_name: str, readers: Sequence[StageRef]) -> LoopState:
        """Let readers read a copy, the next stage, which has the stage's name with ".scope_name"."""
        ids = tuple(sorted(self.stage_id(reader) for reader in readers))
        return self.apply(CacheReadStep(self.stage_id(stage), scope_name, ids))

    def cache_write(self, stage: StageRef, scope_name: str) -> LoopState:
        """Compute a stage in a new one, which takes its number and has its name with ".scope_name"."""
        return self.apply(CacheWriteStep(self.stage_id(stage), scope_name))

    def rfactor(self, stage: StageRef, loop: IterRef, factor_iter_id: int) -> LoopState:
        """Compute partial results in a new stage, which takes the number and has the name with ".rf"."""
        return self.apply(RfactorStep(self.stage_id(stage), self.iter_id(stage, loop), factor_iter_id))
