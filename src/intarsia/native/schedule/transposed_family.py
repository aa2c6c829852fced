"""Schedule family of transposed convolutions of blocked tensors."""

from __future__ import annotations

from typing import Final

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain
from intarsia.native.schedule.register_tiles import PixelTile
from intarsia.native.schedule.schedule_family import Choice, Knob, ScheduleFamily, loop_extents
from intarsia.native.schedule.schedule_task import ScheduleTask
from intarsia.native.schedule.transposed_convolution import (
    loop_of_tile,
    state_of_transposed,
    transposed_tile,
)

_MOST_ROWS: Final = 4
_MOST_BLOCKS: Final = 6


def transposed_family(chain: BlockedChain, task: ScheduleTask) -> ScheduleFamily:
    """Return the family of `transposed_state` with all register tiles."""
    op, default, registers = chain.reduction, transposed_tile(chain, task), task.isa.vector_registers
    least = min(task.isa.independent_sums, default.rows * default.pixels * default.blocks)
    _, o, *spatial, _ = [loop.name for loop in chain.state[chain.target].iters]
    rows, columns, blocks = op.shape[-3] if len(spatial) > 1 else 1, op.shape[-2], op.shape[1]

    def make(choice: Choice) -> LoopState:
        return state_of_transposed(chain, task, PixelTile(*choice))

    def fits(choice: Choice) -> bool:
        """Return whether sums and a weight vector per block fit into registers, and sums are enough."""
        tile = PixelTile(*choice)
        sums = tile.rows * tile.pixels * tile.blocks
        return least <= sums <= registers - tile.blocks

    def read(state: LoopState) -> Choice | None:
        extents = loop_extents(state, chain.target)
        tiles = [loop_of_tile(name, dimension, len(spatial)) for dimension, name in enumerate(spatial)]
        height, width = [extents.get(name, 1) for name in ("", *tiles)][-2:]
        return PixelTile(height, width, extents.get(f"{o}.1", 1))

    knobs = (
        Knob.of("rows", range(1, min(_MOST_ROWS, rows) + 1), default.rows),
        Knob.of("pixels", range(1, min(columns, registers) + 1), default.pixels),
        Knob.of("blocks", range(1, min(_MOST_BLOCKS, blocks) + 1), default.blocks),
    )
    return ScheduleFamily(knobs, default, make, fits, read)
