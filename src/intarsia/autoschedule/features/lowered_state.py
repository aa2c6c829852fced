"""The loops of a state as models see them, made once for all that ask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from intarsia.autoschedule.features.store_analysis import StoreAnalysis, analysed_stores
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.ir import PrimFunc
from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.op_attrs import LAYOUT_FREE
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.lowering import lower
from intarsia.native.schedule import with_state
from intarsia.support.errors import UsageError


@dataclass(frozen=True)
class LoweredState:
    """A state as a loop function.

    Attributes:
        function: Before any pass.
    """

    function: PrimFunc

    @cached_property
    def stores(self) -> tuple[StoreAnalysis, ...]:
        """What the statements of the function touch."""
        return analysed_stores(self.function)


def lowered_state(task: SearchTask, state: LoopState) -> LoweredState | None:
    """The loops that are compiled for a state: placeholders whose layout is free are read as they are packed.

    A draft model, a learned model, and the update after a measurement ask for the same few hundred states
    one after another, so that the last ones are kept.

    Args:
        task: What is searched.
        state: Of its loops.

    Returns:
        The loops, or None if the state cannot be lowered.
    """
    return _lowered(task.dag, task.layout_rewrite_option, state)


@lru_cache(maxsize=512)
def _lowered(dag: ComputeDAG, option: LayoutRewriteOption, state: LoopState) -> LoweredState | None:
    try:
        if not any(LAYOUT_FREE in op.attrs for op in dag.ops):
            return LoweredState(lower(dag, state))
        made = with_state(dag, state, option)
        return LoweredState(lower(made.dag, made.state))
    except UsageError:
        return None
