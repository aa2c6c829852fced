"""Schedule family of grouped convolutions of blocked tensors."""

from __future__ import annotations

from typing import Final

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain
from intarsia.native.schedule.grouped import GroupedChoice, grouped_choice, grouped_state, own_blocks
from intarsia.native.schedule.schedule_family import (
    Choice,
    Knob,
    ScheduleFamily,
    divisors_up_to,
    loop_extents,
    stands_outside,
)
from intarsia.native.schedule.schedule_task import ScheduleTask

_MOST_BLOCKS: Final = 8


def grouped_family(chain: BlockedChain, task: ScheduleTask) -> ScheduleFamily:
    """Return the family of `grouped_state`: register tiles, and the loops outside of them."""
    op, default = chain.reduction, grouped_choice(chain, task)
    group_blocks, columns, registers = own_blocks(op), op.shape[-2], task.isa.vector_registers
    _, o, *rows, w, _ = [loop.name for loop in chain.state[chain.target].iters]

    def make(choice: Choice) -> LoopState:
        return grouped_state(chain, task, GroupedChoice(*choice))

    def fits(choice: Choice) -> bool:
        blocks, pixels, _ = GroupedChoice(*choice)
        return blocks * pixels < registers

    def read(state: LoopState) -> Choice | None:
        extents = loop_extents(state, chain.target)
        if f"{o}.2" not in extents or f"{w}.1" not in extents:
            return None
        is_by_group = stands_outside(extents, f"{o}.0", rows[0]) if rows else default.is_by_group
        return GroupedChoice(extents[f"{o}.2"], extents[f"{w}.1"], int(is_by_group))

    knobs = (
        Knob.of("blocks", divisors_up_to(group_blocks, _MOST_BLOCKS), default.blocks),
        Knob.of("pixels", range(1, min(columns, registers) + 1), default.pixels),
        Knob.of("is_by_group", (0, 1), default.is_by_group),
    )
    return ScheduleFamily(knobs, default, make, fits, read)
