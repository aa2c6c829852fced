"""The schedule family of a DAG, from which a search starts."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.attention_family import attention_family
from intarsia.native.schedule.block_product_family import block_product_family
from intarsia.native.schedule.blocked import blocked_state
from intarsia.native.schedule.blocked_chain import BlockedChain, blocked_chain
from intarsia.native.schedule.channels_first_family import channels_first_family
from intarsia.native.schedule.channels_last import channels_last_state
from intarsia.native.schedule.channelwise_family import channelwise_family
from intarsia.native.schedule.convolution_family import convolution_family
from intarsia.native.schedule.gemm_family import gemm_family
from intarsia.native.schedule.grouped_family import grouped_family
from intarsia.native.schedule.row_family import row_family
from intarsia.native.schedule.schedule_family import ScheduleFamily
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.schedule.transposed_convolution import overlapping_state, transposed_chain
from intarsia.native.schedule.transposed_family import transposed_family
from intarsia.native.schedule.winograd_chain import winograd_chain
from intarsia.native.schedule.winograd_family import winograd_family
from intarsia.native.te.operators.blocked_layout import CHANNELWISE, CONVOLUTION, GROUPED
from intarsia.support.errors import UsageError
from intarsia.target.machine_model import MachineModel

Rule: TypeAlias = Callable[[ScheduleTask], ScheduleFamily | None]

_OF_CHAINS: Final[dict[str, Callable[[BlockedChain, ScheduleTask], ScheduleFamily]]] = {
    CONVOLUTION: convolution_family,
    CHANNELWISE: channelwise_family,
    GROUPED: grouped_family,
}


def schedule_family(dag: ComputeDAG, isa: Isa, threads: int) -> ScheduleFamily | None:
    """Return the schedules that the rule of a DAG can build; `default_state` is the default among them.

    Args:
        dag: DAG before any step.
        isa: Instruction set of the machine, with its model.
        threads: Number of threads.

    Returns:
        The family; None if the rule of the DAG leaves nothing open.
    """
    return _family(dag, isa, isa.machine, threads)


@lru_cache(maxsize=64)
def _family(dag: ComputeDAG, isa: Isa, _machine: MachineModel, threads: int) -> ScheduleFamily | None:
    """Cached by the machine model too, since the equality of instruction sets ignores it."""
    task = ScheduleTask(dag, isa, threads)
    for rule in _RULES:
        try:
            family = rule(task)
        except UsageError:
            continue
        if family is not None and family.state_of(family.default) is not None:
            return family if family.size > 1 else None
    return None


def _channels_first_family(task: ScheduleTask) -> ScheduleFamily | None:
    """Return the family of a convolution of plain tensors; channels last have another rule, of one state."""
    return None if channels_last_state(task) is not None else channels_first_family(task)


def _blocked_family(task: ScheduleTask) -> ScheduleFamily | None:
    """Return the family of one operation on a blocked tensor."""
    transformed = winograd_chain(task)
    if transformed is not None:
        return winograd_family(transformed, task)
    transposed = transposed_chain(task)
    if transposed is not None:
        return transposed_family(transposed, task)
    chain = None if overlapping_state(task) is not None else blocked_chain(task)
    if chain is not None and chain.kind in _OF_CHAINS:
        return _OF_CHAINS[chain.kind](chain, task)
    fixed = blocked_state(task)
    return None if fixed is None else ScheduleFamily((), (), lambda _: fixed, lambda _: True, lambda _: ())


_RULES: Final[tuple[Rule, ...]] = (
    _blocked_family,
    block_product_family,
    attention_family,
    gemm_family,
    _channels_first_family,
    row_family,
)
"""Rules in the order of those of `default_schedule`."""
