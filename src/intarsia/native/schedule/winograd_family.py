"""The schedules of convolutions by Winograd's transforms that a search tries."""

from __future__ import annotations

from typing import Final

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.schedule_family import (
    Choice,
    Knob,
    ScheduleFamily,
    loop_extents,
    sizes_of_pieces,
    stands_outside,
)
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.schedule.winograd import WinogradChoice, state_of_choice, winograd_choice
from intarsia.native.schedule.winograd_chain import WinogradChain

_MOST_BLOCKS: Final = 4
_MOST_PIECES: Final = 16
_LEAST_SUMS: Final = 8
"""Fewer sums in registers wait for each other, unless the rule has no more."""


def winograd_family(chain: WinogradChain, task: ScheduleTask) -> ScheduleFamily:
    """All schedules of `state_of_choice` that may be good: tiles in registers, bands, chunks, their order."""
    default = winograd_choice(chain, task)
    down, _ = chain.image
    blocks = chain.sums.shape[3]
    registers = task.isa.vector_registers
    least = min(_LEAST_SUMS, default.tiles * default.blocks)
    values = (
        range(1, registers),
        range(1, min(_MOST_BLOCKS, blocks) + 1),
        sizes_of_pieces(down, _MOST_PIECES),
        sizes_of_pieces(blocks, _MOST_PIECES),
        (0, 1),
    )
    knobs = tuple(Knob.of(*each) for each in zip(WinogradChoice._fields, values, default, strict=True))

    def fits(choice: Choice) -> bool:
        """Sums, a vector of weights for each block, and an input are in registers, and sums are enough."""
        made = WinogradChoice(*choice)
        sums = made.tiles * made.blocks
        return least <= sums < registers - made.blocks and made.blocks <= made.chunk

    def make(choice: Choice) -> LoopState:
        return state_of_choice(chain, task, WinogradChoice(*choice))

    return ScheduleFamily(knobs, default, make, fits, lambda state: _read(state, chain))


def _read(state: LoopState, chain: WinogradChain) -> Choice | None:
    """What was decided, as the loops tell."""
    _, o, h, *_ = [loop.name for loop in chain.state[chain.target].iters]
    _, _, _, block, tile, *_ = [loop.name for loop in chain.state[chain.product].iters]
    outer, product = loop_extents(state, chain.target), loop_extents(state, chain.product)
    if f"{h}.1" not in outer or f"{o}.1" not in outer or f"{tile}.1" not in product:
        return None
    is_by_blocks = stands_outside(outer, f"{o}.0", f"{h}.0")
    return WinogradChoice(
        product[f"{tile}.1"], product[f"{block}.1"], outer[f"{h}.1"], outer[f"{o}.1"], int(is_by_blocks)
    )
