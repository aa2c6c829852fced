"""What the parts of the splits of a history become: blocks, threads, vectors, or loops of a thread."""

from __future__ import annotations

from dataclasses import dataclass, replace

from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.loop_state.steps import FollowSplitStep, RfactorStep, SplitStep, TransformStep
from intarsia.native.te import IterKind


@dataclass(frozen=True, slots=True)
class OpenSplit:
    """A split of a history.

    Attributes:
        number: Number of its step.
        stage: Name of the stage's operation when the loop is split.
        extent: Extent of the loop; None for a tile, whose extent follows from other lengths.
        annotations: Annotation of the loop that each part becomes, outermost first.
        is_reduced: Whether the loop is a reduction.
        is_shared: Whether the inner part becomes the axis of partial results, which threads share.
        element_bytes: Bytes of an element of the stage's result.
    """

    number: int
    stage: str
    extent: int | None
    annotations: tuple[IteratorAnnotation, ...]
    is_reduced: bool
    is_shared: bool
    element_bytes: int


def splits_of(state: LoopState) -> tuple[OpenSplit, ...]:
    """Return the splits of a history that give lengths of inner parts, in order; cached in the state."""
    splits = state.notes.get(OpenSplit)
    if not isinstance(splits, tuple):
        splits = state.notes[OpenSplit] = _Search(state).splits()
    return splits


class _Search:
    """Replays a history, and notes its splits."""

    def __init__(self, state: LoopState) -> None:
        self._steps = state.transform_steps
        self._current = LoopState.initial(state.initial_dag)
        self._splits: dict[int, OpenSplit] = {}
        self._final = {
            stage.op.name: {
                part.name: loop.annotation for loop in stage.iters for part in (loop, *loop.orig_iters)
            }
            for stage in state.stages
        }

    def splits(self) -> tuple[OpenSplit, ...]:
        for number, step in enumerate(self._steps):
            applied: TransformStep = step
            if isinstance(step, SplitStep) and step.inner_to_outer:
                split = self._splits[number] = self._split(number, step)
                if split.is_shared:
                    # Partial results are made for a number; here any will do.
                    applied = replace(step, lengths=tuple(length or 1 for length in step.lengths))
            elif isinstance(step, FollowSplitStep) and step.src_step_id in self._splits:
                self._follow(step)
            self._current = self._current.apply(applied)
        return tuple(self._splits.values())

    def _split(self, number: int, step: SplitStep) -> OpenSplit:
        stage = self._current.stages[step.stage_id]
        loop = stage.iters[step.iter_id]
        following = self._steps[number + 1] if number + 1 < len(self._steps) else None
        return OpenSplit(
            *(number, stage.op.name, step.extent),
            self._annotations(stage.op.name, loop.name, len(step.lengths) + 1),
            loop.kind is not IterKind.SPATIAL,
            isinstance(following, RfactorStep) and following.stage_id == step.stage_id,
            stage.op.buffers[0].dtype.numpy.itemsize,
        )

    def _follow(self, step: FollowSplitStep) -> None:
        """Note what the outer parts become in a stage that follows a split: blocks and threads are there."""
        stage = self._current.stages[step.stage_id]
        loop = stage.iters[step.iter_id].name
        outer = self._annotations(stage.op.name, loop, step.n_split + 1)[:-1]
        split = self._splits[step.src_step_id]
        if any(annotation.is_thread for annotation in outer):
            annotations = (*outer, *split.annotations[len(outer) :])
            self._splits[step.src_step_id] = replace(split, annotations=annotations)

    def _annotations(self, stage: str, loop: str, count: int) -> tuple[IteratorAnnotation, ...]:
        became = self._final.get(stage, {})
        return tuple(became.get(f"{loop}.{part}", IteratorAnnotation.NONE) for part in range(count))
