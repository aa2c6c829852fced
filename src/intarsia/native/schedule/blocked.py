"""Schedules of operations on blocked tensors."""

from __future__ import annotations

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import blocked_chain
from intarsia.native.schedule.channelwise import channelwise_state, global_pool_state
from intarsia.native.schedule.convolution import convolution_state
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.te.operators.blocked_layout import CHANNELWISE, CONVOLUTION, GLOBAL_POOL

_STATES = {
    CONVOLUTION: convolution_state,
    CHANNELWISE: channelwise_state,
    GLOBAL_POOL: global_pool_state,
}


def blocked_state(task: ScheduleTask) -> LoopState | None:
    """The state of a DAG around one convolution or pool of a blocked tensor; None for others."""
    chain = blocked_chain(task)
    state = None if chain is None else _STATES.get(chain.kind)
    return None if chain is None or state is None else state(chain, task)
