"""Schedules of operations on blocked tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain, blocked_chain
from intarsia.native.schedule.channelwise import channelwise_state, global_pool_state
from intarsia.native.schedule.convolution import convolution_state
from intarsia.native.schedule.grouped import grouped_state
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.schedule.transposed_convolution import (
    overlapping_state,
    projection_state,
    transposed_state,
)
from intarsia.native.schedule.winograd import winograd_state
from intarsia.native.te.operators.blocked_layout import (
    CHANNELWISE,
    CONVOLUTION,
    GLOBAL_POOL,
    GROUPED,
    PROJECTION,
)

_STATES: Final[Mapping[str, Callable[[BlockedChain, ScheduleTask], LoopState]]] = {
    CONVOLUTION: convolution_state,
    CHANNELWISE: channelwise_state,
    GLOBAL_POOL: global_pool_state,
    GROUPED: grouped_state,
    PROJECTION: projection_state,
}


def blocked_state(task: ScheduleTask) -> LoopState | None:
    """Return the state of a DAG around one convolution or pool of a blocked tensor; None for others."""
    for rule in (winograd_state, transposed_state, overlapping_state):
        state = rule(task)
        if state is not None:
            return state
    chain = blocked_chain(task)
    schedule = None if chain is None else _STATES.get(chain.kind)
    return None if chain is None or schedule is None else schedule(chain, task)
