"""Schedule family of convolutions with channels first."""

from __future__ import annotations

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.blocked_chain import chain_end
from intarsia.native.schedule.channels_first import (
    ChannelsFirstChoice,
    channels_first_choice,
    channels_first_state,
    only_channels_first,
)
from intarsia.native.schedule.schedule_family import Choice, Knob, ScheduleFamily, loop_extents
from intarsia.native.schedule.schedule_task import ScheduleTask


def channels_first_family(task: ScheduleTask) -> ScheduleFamily | None:
    """Return the family of `channels_first_state`: register tiles; None for other DAGs."""
    form = only_channels_first(task)
    if form is None:
        return None
    default, tiles = channels_first_choice(form, task), form.choices(task)
    target = chain_end(task, form.op)
    _, filter_, *outer, pixel = (loop.name for loop in LoopState.initial(task.dag)[target].iters)

    def make(choice: Choice) -> LoopState:
        state = channels_first_state(task, ChannelsFirstChoice(*choice))
        assert state is not None, "the form says so"
        return state

    def read(state: LoopState) -> Choice | None:
        extents = loop_extents(state, target.name)
        inner = (f"{filter_}.1.1", f"{outer[-1]}.1" if outer else f"{filter_}.1.1", f"{pixel}.1")
        if not set(inner) <= extents.keys():
            return None
        filters, rows, vectors = (extents[name] for name in inner)
        return ChannelsFirstChoice(filters, rows if outer else 1, vectors)

    knobs = (
        Knob.of("filters", {tile.filters for tile in tiles}, default.filters),
        Knob.of("rows", {tile.rows for tile in tiles}, default.rows),
        Knob.of("vectors", {tile.vectors for tile in tiles}, default.vectors),
    )
    fitting = frozenset(tiles)
    return ScheduleFamily(knobs, default, make, lambda choice: choice in fitting, read)
