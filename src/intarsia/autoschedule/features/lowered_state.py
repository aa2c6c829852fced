"""The lowered loops of a state, cached for all cost models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from intarsia.autoschedule.features.store_analysis import StoreAnalysis, analyse_stores
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.ir import PrimFunc
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import lower_to_kernels
from intarsia.native.gpu.kernel_list import list_kernels
from intarsia.native.gpu.tensorised import tensorised_tiling
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.lowering import lower
from intarsia.native.schedule import with_state
from intarsia.native.te.op_attrs import LAYOUT_FREE
from intarsia.support.errors import CompileError, UsageError


@dataclass(frozen=True)
class LoweredState:
    """A state as a loop function.

    Attributes:
        function: Loop function as `lower` returns it, before any pass; its kernels if loops are tensorised.
        kernels: Kernels for a GPU; None on CPUs.
    """

    function: PrimFunc
    kernels: PrimFunc | None = None

    @cached_property
    def stores(self) -> tuple[StoreAnalysis, ...]:
        """Analysed stores of the function."""
        return analyse_stores(self.function)


def lower_state(task: SearchTask, state: LoopState) -> LoweredState | None:
    """Lower a state as it is compiled: placeholders with a free layout are read as packed.

    The draft model, the learned model and the update after a measurement lower the same few hundred states
    one after another, so the most recent ones are cached.

    Args:
        task: Search task.
        state: State of the task.

    Returns:
        The lowered loops, or None if the state cannot be lowered, or no GPU can launch its kernels.
    """
    if task.hardware.is_gpu:
        return _lowered_for_gpu(task.dag, state)
    return _lowered(task.dag, task.layout_rewrite_option, state)


@lru_cache(maxsize=512)
def _lowered(dag: ComputeDAG, option: LayoutRewriteOption, state: LoopState) -> LoweredState | None:
    try:
        if not any(LAYOUT_FREE in op.attrs for op in dag.ops):
            return LoweredState(lower(dag, state))
        rewritten = with_state(dag, state, option)
        return LoweredState(lower(rewritten.dag, rewritten.state))
    except UsageError:
        return None


@lru_cache(maxsize=512)
def _lowered_for_gpu(dag: ComputeDAG, state: LoopState) -> LoweredState | None:
    try:
        kernels = lower_to_kernels(dag, state)
        list_kernels(kernels)
        is_tensorised = tensorised_tiling(state) is not None
        return LoweredState(kernels if is_tensorised else lower(dag, state), kernels)
    except (UsageError, CompileError):
        return None
