"""Refusal of steps that lowering cannot carry out: none is dropped without a word."""

from __future__ import annotations

from intarsia.native.loop_state.iterator import IteratorAnnotation
from intarsia.native.loop_state.state import LoopState
from intarsia.native.loop_state.steps import StorageAlignStep
from intarsia.support.errors import UsageError


def refuse_unlowered(state: LoopState) -> None:
    """Check that a state has no step whose meaning its loop function would lack.

    Raises:
        UsageError: A loop is bound to a thread axis or tensorised, or storage is aligned.
    """
    for stage in state.stages:
        for loop in stage.iters:
            if loop.annotation.is_thread or loop.annotation is IteratorAnnotation.TENSORIZE:
                raise UsageError(
                    f"the loop {loop.name} of {stage.op.name} is bound to {loop.annotation.keyword}; "
                    "expected a loop of a CPU: serial, parallel, vectorised or unrolled",
                    help="leave the step out, or annotate the loop as parallel",
                )
    for number, step in enumerate(state.transform_steps):
        if isinstance(step, StorageAlignStep) and (step.factor, step.offset) != (1, 0):
            raise UsageError(
                f"step {number} aligns storage to a multiple of {step.factor} plus {step.offset} elements; "
                "expected dense tiles",
                help="leave the step storage_align out",
            )
