"""Schedule family of attention."""

from __future__ import annotations

from typing import Final

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.attention import (
    AttentionChain,
    attention_chain,
    state_of_blocks,
    tiles_of_block,
)
from intarsia.native.schedule.schedule_family import Choice, Knob, ScheduleFamily, sizes_of_pieces
from intarsia.native.schedule.schedule_task import ScheduleTask

_MOST_BLOCKS: Final = 16


def attention_family(task: ScheduleTask) -> ScheduleFamily | None:
    """Return the family of `attention_state` with all sizes of row blocks; None for other DAGs."""
    chain = attention_chain(task)
    return None if chain is None else _family(chain, task)


def _family(chain: AttentionChain, task: ScheduleTask) -> ScheduleFamily:
    default = tiles_of_block(chain, task)
    tiles = -(-chain.result.form.rows // chain.result.tile.rows)
    knob = Knob.of("rows", sizes_of_pieces(tiles, _MOST_BLOCKS), default)

    def make(choice: Choice) -> LoopState:
        return state_of_blocks(chain, task, *choice)

    def read(state: LoopState) -> Choice | None:
        """Compare with the states of all choices, which are few."""
        found = (value for value in knob.values if make((value,)).transform_steps == state.transform_steps)
        return next(((value,) for value in found), None)

    return ScheduleFamily((knob,), (default,), make, lambda _: True, read)
