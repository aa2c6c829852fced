"""Schedule family of channelwise operations on blocked tensors."""

from __future__ import annotations

from typing import Final

from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain
from intarsia.native.schedule.channelwise import ChannelwiseChoice, channelwise_choice, channelwise_state
from intarsia.native.schedule.schedule_family import (
    Choice,
    Knob,
    ScheduleFamily,
    loop_extents,
    stands_outside,
)
from intarsia.native.schedule.schedule_task import ScheduleTask

_MOST_ROWS: Final = 4
_MOST_WRITTEN_OUT: Final = 25
"""Maximum number of unrolled taps, as in a 5 x 5 window."""


def channelwise_family(chain: BlockedChain, task: ScheduleTask) -> ScheduleFamily:
    """Return the family of `channelwise_state`: pixel tiles, unrolled taps, and loop order."""
    op, default = chain.reduction, channelwise_choice(chain, task)
    _, o, *rows, w, _ = [loop.name for loop in chain.state[chain.target].iters]
    height, columns = op.shape[-3] if rows else 1, op.shape[-2]
    taps = [axis.extent for axis in op.reduce_axes]
    tap_names = [loop.name for loop in chain.state[chain.anchor].iters[len(op.axes) :]]

    def make(choice: Choice) -> LoopState:
        return channelwise_state(chain, task, ChannelwiseChoice(*choice))

    def fits(choice: Choice) -> bool:
        """Return whether sums fit into registers, and unrolled code is not too long."""
        tile_rows, pixels, unrolled, *_ = ChannelwiseChoice(*choice)
        written_out = 1
        for extent in taps[len(taps) - unrolled :]:
            written_out *= extent
        is_short = not unrolled or written_out <= _MOST_WRITTEN_OUT or unrolled == default.unrolled
        return is_short and tile_rows * pixels <= task.accumulators

    def read(state: LoopState) -> Choice | None:
        extents = loop_extents(state, chain.target)
        if f"{w}.1" not in extents:
            return None
        row = rows[-1] if rows else ""
        outer = f"{row}.0" if f"{row}.0" in extents else row
        is_by_plane = stands_outside(extents, o, outer) if rows else default.is_by_plane
        has_bands = {f"{row}.1", f"{row}.2"} <= extents.keys()  # other sketches fuse some of them
        tile_rows = extents.get(f"{row}.2" if has_bands else f"{row}.1", 1)
        band = extents[f"{row}.1"] if has_bands else 1
        written_out = {
            loop.name
            for loop in state[chain.anchor].iters
            if loop.annotation is IteratorAnnotation.UNROLL and loop.name in tap_names
        }
        pixels = extents[f"{w}.1"]
        return ChannelwiseChoice(tile_rows, pixels, len(written_out), int(is_by_plane), band)

    knobs = (
        Knob.of("rows", range(1, min(_MOST_ROWS, height) + 1), default.rows),
        Knob.of("pixels", range(1, min(columns, task.accumulators) + 1), default.pixels),
        Knob.of("unrolled", range(min(2, len(taps)) + 1), default.unrolled),
        Knob.of("is_by_plane", (0, 1) if rows else (), default.is_by_plane),
        Knob.of("band", (1, 2, 4, 8) if rows else (), default.band),
    )
    return ScheduleFamily(knobs, default, make, fits, read)
