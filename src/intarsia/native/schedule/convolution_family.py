"""Schedule family of convolutions of blocked tensors."""

from __future__ import annotations

from typing import Final

from intarsia.native.loop_state import ComputeAt, LoopState
from intarsia.native.schedule.blocked_chain import BlockedChain
from intarsia.native.schedule.convolution import (
    ConvolutionChoice,
    convolution_choice,
    convolution_state,
    group_blocks,
    may_pad_bands,
)
from intarsia.native.schedule.schedule_family import (
    Choice,
    Knob,
    ScheduleFamily,
    divisors_up_to,
    loop_extents,
    sizes_of_pieces,
    stands_outside,
)
from intarsia.native.schedule.schedule_task import ScheduleTask

_MOST_ROWS: Final = 4
_MOST_BLOCKS: Final = 6
_MOST_STEPS: Final = 8
_MOST_BANDS: Final = 16
_PIECES: Final = (2, 4, 8, 16, 32)
"""Numbers of blocks of input channels in a piece of sums."""


def convolution_family(chain: BlockedChain, task: ScheduleTask) -> ScheduleFamily:
    """Return the family of `convolution_state`: tiles, order, bands, padding, K-unroll, pieces."""
    return _Family(chain, task).family


class _Family:
    """The parts of the family of one convolution."""

    def __init__(self, chain: BlockedChain, task: ScheduleTask) -> None:
        self.chain, self.task, op = chain, task, chain.reduction
        self.default = convolution_choice(chain, task)
        spatial = op.shape[2:-1]
        self.rows, self.columns = spatial[-2] if len(spatial) > 1 else 1, spatial[-1]
        self.blocks, self.depth = op.shape[1], op.reduce_axes[-1].extent
        self.pieces = op.reduce_axes[0].extent

    @property
    def family(self) -> ScheduleFamily:
        """The family."""
        values = (
            range(1, min(_MOST_ROWS, self.rows) + 1),
            range(1, min(self.columns, self.task.isa.vector_registers) + 1),
            range(1, min(_MOST_BLOCKS, self.blocks) + 1),
            (0, 1),
            sizes_of_pieces(self.rows, _MOST_BANDS),
            range(2) if may_pad_bands(self.chain) else (),
            divisors_up_to(self.depth, _MOST_STEPS),
            (0, *(piece for piece in _PIECES if 2 * piece <= self.pieces)),
        )
        fields = zip(ConvolutionChoice._fields, values, self.default, strict=True)
        knobs = tuple(Knob.of(*knob) for knob in fields)
        return ScheduleFamily(knobs, self.default, self._make, self._fits, self._read, self._canonical)

    def _make(self, choice: Choice) -> LoopState:
        return convolution_state(self.chain, self.task, ConvolutionChoice(*choice))

    def _fits(self, choice: Choice) -> bool:
        """Return whether sums and a weight vector per block fit into registers, and sums are enough."""
        tile = ConvolutionChoice(*choice)
        sums = tile.rows * tile.pixels * tile.blocks
        least = min(
            self.task.isa.independent_sums, self.default.rows * self.default.pixels * self.default.blocks
        )
        is_within_group = group_blocks(self.chain.reduction) % tile.blocks == 0
        return is_within_group and least <= sums <= self.task.isa.vector_registers - tile.blocks

    def _canonical(self, choice: Choice) -> Choice:
        """Return the choice with unused decisions at their defaults: an order by blocks has no bands."""
        tile = ConvolutionChoice(*choice)
        if tile.is_by_blocks:
            return tile._replace(band=1, pads_bands=0)
        return tile._replace(band=min(tile.band, -(-self.rows // tile.rows)))

    def _read(self, state: LoopState) -> Choice | None:
        chain = self.chain
        _, o, *rows, w, _ = [loop.name for loop in chain.state[chain.target].iters]
        extents = loop_extents(state, chain.target)
        if f"{o}.1" not in extents or f"{w}.1" not in extents:
            return None
        height = band = 1
        is_by_blocks = self.default.is_by_blocks
        if rows:
            band, height = extents.get(f"{rows[-1]}.1", 1), extents.get(f"{rows[-1]}.2", 1)
            is_by_blocks = int(stands_outside(extents, f"{o}.0", f"{rows[-1]}.0"))
        pads_bands = chain.pad is not None and state[chain.pad].compute_at is ComputeAt.ITER
        last = chain.state[chain.anchor].iters[-1].name
        steps = loop_extents(state, chain.anchor).get(f"{last}.1", 1)
        first = chain.state[chain.anchor].iters[len(chain.reduction.axes)].name
        piece = loop_extents(state, chain.anchor).get(f"{first}.1", 0)
        tile = height, extents[f"{w}.1"], extents[f"{o}.1"]
        return ConvolutionChoice(*tile, is_by_blocks, band, int(pads_bands), steps, piece)
