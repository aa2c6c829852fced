"""The lowered loops of a state, cached for all cost models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from intarsia.autoschedule.features.store_analysis import StoreAnalysis, analyse_stores
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.ir import PrimFunc
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.lowering import lower
from intarsia.native.schedule import with_state
from intarsia.native.te.op_attrs import LAYOUT_FREE
from intarsia.support.errors import UsageError


@dataclass(frozen=True)
class LoweredState:
    """A state as a loop function.

    Attributes:
        function: Loop function as `lower` returns it, before any pass.
    """

    function: PrimFunc

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
        The lowered loops, or None if the state cannot be lowered.
    """
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
