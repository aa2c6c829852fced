"""Schedule family of convolutions by Winograd's transforms."""

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


def winograd_family(chain: WinogradChain, task: ScheduleTask) -> ScheduleFamily:
    """Return the family of `state_of_choice`: register tiles, bands, chunks, and their order."""
    default = winograd_choice(chain, task)
    down, _ = chain.image
    blocks = chain.sums.shape[3]
    registers = task.isa.vector_registers
    least = min(task.isa.independent_sums, default.tiles * default.blocks)
    values = (
        range(1, registers),
        range(1, min(_MOST_BLOCKS, blocks) + 1),
        sizes_of_pieces(down, _MOST_PIECES),
        sizes_of_pieces(blocks, _MOST_PIECES),
        (0, 1),
    )
    knobs = tuple(Knob.of(*field) for field in zip(WinogradChoice._fields, values, default, strict=True))

    def fits(choice: Choice) -> bool:
        """Return whether sums, a weight vector per block and an input fit registers, and sums suffice."""
        winograd = WinogradChoice(*choice)
        sums = winograd.tiles * winograd.blocks
        return least <= sums < registers - winograd.blocks and winograd.blocks <= winograd.chunk

    def make(choice: Choice) -> LoopState:
        return state_of_choice(chain, task, WinogradChoice(*choice))

    return ScheduleFamily(knobs, default, make, fits, lambda state: _read(state, chain))


def _read(state: LoopState, chain: WinogradChain) -> Choice | None:
    """Read the choice from the loops of a state; None if they are of another form."""
    _, o, h, *_ = [loop.name for loop in chain.state[chain.target].iters]
    _, _, _, block, tile, *_ = [loop.name for loop in chain.state[chain.product].iters]
    outer, product = loop_extents(state, chain.target), loop_extents(state, chain.product)
    if f"{h}.1" not in outer or f"{o}.1" not in outer or f"{tile}.1" not in product:
        return None
    is_by_blocks = stands_outside(outer, f"{o}.0", f"{h}.0")
    return WinogradChoice(
        product[f"{tile}.1"], product[f"{block}.1"], outer[f"{h}.1"], outer[f"{o}.1"], int(is_by_blocks)
    )
