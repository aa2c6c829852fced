"""Convolutions by Winograd's transforms: blocks of tiles whose transformed numbers stay in a cache.

for bands of rows of tiles, parallel
  transformed inputs of the band
  for chunks of blocks of channels
    for points
      for blocks of channels of the chunk, for tiles: products, summed over channels in registers
    for blocks of channels, for tiles: transformed back, what follows, results

By blocks it is the other way round: inputs of all tiles are transformed first, and chunks of blocks are
parallel, so that each weight is read once, by one thread.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.convolution_order import ENOUGH, share_of_time
from intarsia.native.schedule.register_tiles import pixel_tile
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.schedule.winograd_chain import WinogradChain, winograd_chain

_LEAST_TILES: Final = 28
"""Tiles of a band for which weights are read again from far away, by measurement."""
_LEAST_SUMS: Final = 8
"""Fewer sums in registers wait for each other."""
_MANY_WEIGHTS: Final = 4
"""Weights that are so many times larger than all transformed inputs are read once only."""


class WinogradChoice(NamedTuple):
    """What is decided of one convolution.

    Attributes:
        tiles: Whose sums are in registers at once.
        blocks: Of how many blocks of channels.
        rows: Of tiles in a band.
        chunk: How many blocks of channels are transformed back together.
        is_by_blocks: Whether chunks are outside of bands, not inside.
    """

    tiles: int
    blocks: int
    rows: int
    chunk: int
    is_by_blocks: int


def winograd_state(task: ScheduleTask) -> LoopState | None:
    """The state of a DAG around one convolution by Winograd's transforms; None for others."""
    chain = winograd_chain(task)
    return None if chain is None else state_of_choice(chain, task, winograd_choice(chain, task))


def winograd_choice(chain: WinogradChain, task: ScheduleTask) -> WinogradChoice:
    """What the rule decides: what a band makes stays in a cache, and weights are read as seldom as can be."""
    threads = task.threads if task.is_parallel(work_of([chain.sums])) else 1
    (down, across), blocks = chain.image, chain.sums.shape[3]
    half = task.isa.caches.second // 2
    is_far = chain.weight_bytes > half
    fitting = half // (chain.tile_bytes * across)
    least = -(-_LEAST_TILES // across) if is_far else 1
    rows = _even(down, max(fitting, least))
    is_by_blocks = chain.weight_bytes >= _MANY_WEIGHTS * chain.input_bytes
    if is_by_blocks:
        rows, chunk = down, _even(blocks, -(-blocks // threads))
    else:
        rows, chunk = _shared_rows(down, rows, threads), blocks
    tiles, count = _register_tile(rows * across, chunk, is_far, task)
    return WinogradChoice(tiles, count, rows, chunk, int(is_by_blocks))


def _shared_rows(down: int, most: int, threads: int) -> int:
    """At most so many rows in a band that all threads have about as much to do."""
    return max(
        range(1, most + 1), key=lambda rows: (share_of_time(-(-down // rows), threads) >= ENOUGH, rows)
    )


def _register_tile(tiles: int, blocks: int, is_far: bool, task: ScheduleTask) -> tuple[int, int]:
    """Tiles and blocks; of weights from far away those of one block, as one stream of memory."""
    if is_far and tiles >= _LEAST_SUMS:
        return _even(tiles, task.accumulators), 1
    found = pixel_tile(1, tiles, blocks, task.accumulators, task.isa.vector_registers - 1)
    return found.pixels, found.blocks


def _even(extent: int, most: int) -> int:
    """The size of equal pieces of at most so many, as far as they can be equal."""
    count = -(-extent // max(1, most))
    return -(-extent // count)


def state_of_choice(chain: WinogradChain, task: ScheduleTask, choice: WinogradChoice) -> LoopState:
    """The state of a chain with what is decided."""
    is_parallel = task.is_parallel(work_of([chain.sums]))
    state, outer = _with_result_loops(chain.state, chain, choice, is_parallel)
    state = _with_product_loops(state, chain, choice)
    state = state.compute_at(chain.product, chain.target, outer[-1])
    state = _with_input_loops(state, chain)
    if choice.is_by_blocks:
        made = [each for each in (chain.pad, chain.inputs) if each]
        for name in made if is_parallel else ():
            state = state.parallel(name, 1)
    else:
        state = state.compute_at(chain.inputs, chain.target, outer[-2])
        if chain.pad:
            state = state.compute_at(chain.pad, chain.target, outer[-2])
    return chain.with_rest(state, task)


def _with_result_loops(
    state: LoopState, chain: WinogradChain, choice: WinogradChoice, is_parallel: bool
) -> tuple[LoopState, list[str]]:
    """Bands and chunks as the outermost loops, then blocks, then tiles, then the elements of a tile."""
    target, half = chain.target, chain.half
    n, o, h, w, v = [loop.name for loop in state[target].iters]
    state = state.split(target, h, [choice.rows, chain.tile]).split(target, w, [chain.tile])
    state = state.split(target, o, [choice.chunk])
    outer = [n, f"{o}.0", f"{h}.0"] if choice.is_by_blocks else [n, f"{h}.0", f"{o}.0"]
    state = state.reorder(target, [*outer, f"{o}.1", f"{h}.1", f"{w}.0", f"{h}.2", f"{w}.1", v])
    if is_parallel:
        state = state.parallel(target, outer[1])
    state = state.unroll(target, f"{h}.2").unroll(target, f"{w}.1").vectorize(target, v)
    n, o, t, y, s, v = [loop.name for loop in state[half].iters]
    state = state.reorder(half, [n, o, t, s, y, v]).unroll(half, s).unroll(half, y).vectorize(half, v)
    return state.compute_at(half, target, f"{w}.0"), outer


def _with_product_loops(state: LoopState, chain: WinogradChain, choice: WinogradChoice) -> LoopState:
    """For each point tiles by blocks of channels, whose sums stay in registers."""
    product = chain.product
    state = state.cache_write(product, "local")
    n, i, j, o, t, v = [loop.name for loop in state[product].iters]
    state = state.split(product, o, [choice.blocks]).split(product, t, [choice.tiles])
    state = state.reorder(product, [n, i, j, f"{o}.0", f"{t}.0", f"{t}.1", f"{o}.1", v])
    state = state.unroll(product, f"{t}.1").unroll(product, f"{o}.1").vectorize(product, v)
    sums = f"{product}.local"
    n, i, j, o, t, v, block, channel = [loop.name for loop in state[sums].iters]
    state = state.reorder(sums, [n, i, j, block, channel, t, o, v])
    state = state.unroll(sums, t).unroll(sums, o).vectorize(sums, v)
    return state.compute_at(sums, product, 4)


def _with_input_loops(state: LoopState, chain: WinogradChain) -> LoopState:
    """For each tile, for each block of channels: rows of its numbers, then columns."""
    inputs, rows = chain.inputs, chain.rows
    n, i, j, t, c, v = [loop.name for loop in state[inputs].iters]
    state = state.reorder(inputs, [n, t, c, i, j, v])
    state = state.unroll(inputs, i).unroll(inputs, j).vectorize(inputs, v)
    m, d, u, y, s, k = [loop.name for loop in state[rows].iters]
    state = state.reorder(rows, [m, d, u, s, y, k]).unroll(rows, y).unroll(rows, s).vectorize(rows, k)
    state = state.compute_at(rows, inputs, c)
    return state if chain.pad is None else state.vectorize(chain.pad, state[chain.pad].iters[-1])
