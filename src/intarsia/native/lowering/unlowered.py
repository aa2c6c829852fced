"""Refusal of steps that lowering cannot carry out: none is dropped without a word."""

from __future__ import annotations

from typing import Final

from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.loop_state.state import LoopState
from intarsia.native.loop_state.steps import StorageAlignStep
from intarsia.native.te import IterKind
from intarsia.support.errors import UsageError

_BOUND: Final = (IteratorAnnotation.BLOCK_X, IteratorAnnotation.THREAD_X, IteratorAnnotation.VTHREAD)
_UNSUPPORTED: Final = tuple(
    annotation
    for annotation in IteratorAnnotation
    if (annotation.is_thread and annotation not in _BOUND) or annotation is IteratorAnnotation.TENSORIZE
)


def has_bound_loops(state: LoopState) -> bool:
    """Return whether a loop of any stage is bound to blocks or threads."""
    return any(loop.annotation in _BOUND for stage in state.stages for loop in stage.iters)


def refuse_unlowered(state: LoopState) -> None:
    """Check that a state has no step whose meaning its loop function would lack.

    Raises:
        UsageError: A loop is bound to another axis than blockIdx.x, threadIdx.x and virtual threads, is
            bound and reduced, or is tensorised; two loops of a stage are bound to threadIdx.x; or storage is
            aligned.
    """
    for stage in state.stages:
        threads = [loop.name for loop in stage.iters if loop.annotation is IteratorAnnotation.THREAD_X]
        if len(threads) > 1:
            raise UsageError(
                f"loops {' and '.join(threads)} of {stage.op.name} are bound to threadIdx.x; expected one",
                help="fuse them into one, and bind that",
            )
        for loop in stage.iters:
            where = f"the loop {loop.name} of {stage.op.name} is bound to {loop.annotation.keyword}"
            if loop.annotation in _UNSUPPORTED:
                raise UsageError(
                    f"{where}; expected blockIdx.x, threadIdx.x or vthread",
                    help="fuse the loops of several axes into one, and bind that",
                )
            if loop.annotation in _BOUND and loop.kind is not IterKind.SPATIAL:
                raise UsageError(
                    f"{where}, and is reduced; expected a spatial loop",
                    help="make partial results with rfactor, and bind their loop",
                )
    for number, step in enumerate(state.transform_steps):
        if isinstance(step, StorageAlignStep) and (step.factor, step.offset) != (1, 0):
            raise UsageError(
                f"step {number} aligns storage to a multiple of {step.factor} plus {step.offset} elements; "
                "expected dense tiles",
                help="leave the step storage_align out",
            )
