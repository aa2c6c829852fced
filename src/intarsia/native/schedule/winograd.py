"""Schedule of convolutions by Winograd's transforms: blocks of tiles whose transforms stay in the cache.

for bands of rows of tiles, parallel
  transformed inputs of the band
  for chunks of blocks of channels
    for points
      for blocks of channels of the chunk, for tiles: products, summed over channels in registers
    for blocks of channels, for tiles: transformed back, what follows, results

By blocks the order is reversed: inputs of all tiles are transformed first, and chunks of blocks are parallel,
so
that one thread reads each weight once.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Final, NamedTuple

from intarsia.native.loop_state import LoopState
from intarsia.native.machine.relative_costs import RelativeCosts
from intarsia.native.schedule.convolution_order import share_of_time
from intarsia.native.schedule.register_tiles import pixel_tile
from intarsia.native.schedule.schedule_task import ScheduleTask, work_of
from intarsia.native.schedule.winograd_chain import WinogradChain, winograd_chain

_WEIGHT_COST: Final = 16
"""Cost of loading weights from memory, in tiles of products, by measurement on Zen 3."""
_ENOUGH: Final = 0.92
"""Minimum speed of the smallest good band, relative to the best band."""
_TURN: Final = 2
"""Number of blocks whose weights are read together; prefetchers do not keep up with more streams."""
_MANY_WEIGHTS: Final = 4
"""Ratio of weights to transformed inputs from which weights are read only once."""
_CACHE_SHARE: Final = 2
"""Divisor of the second-level cache size that gives the memory for the transformed inputs and products of a
band of a grouped convolution."""
_SHARING: Final = 0.5
"""Cost of reading a tile's inputs that another thread transformed, relative to its products (Zen 3)."""


class WinogradChoice(NamedTuple):
    """Choice for one convolution.

    Attributes:
        tiles: Number of tiles whose sums are in registers at once.
        blocks: Number of blocks of channels whose sums are in registers at once.
        rows: Number of rows of tiles in a band.
        chunk: Number of blocks of channels that are transformed back together.
        is_by_blocks: Whether chunks are outside of bands, not inside.
    """

    tiles: int
    blocks: int
    rows: int
    chunk: int
    is_by_blocks: int


def winograd_state(task: ScheduleTask) -> LoopState | None:
    """Return the state of a DAG around one convolution by Winograd's transforms; None for others."""
    chain = winograd_chain(task)
    return None if chain is None else state_of_choice(chain, task, winograd_choice(chain, task))


def winograd_choice(chain: WinogradChain, task: ScheduleTask) -> WinogradChoice:
    """Return the default choice, which reads weights as rarely as possible.

    Cached weights are read once for each register tile of a band, so a band has one, whose results stay in
    the cache beside them. Weights from memory are read once for each band, which is large, or once in total,
    by blocks, if there are many. Then threads read inputs that others have transformed, which takes longer
    than reading weights again if there are many tiles.
    """
    threads = task.threads if task.is_parallel(work_of([chain.sums])) else 1
    if chain.group_blocks:
        return _choice_of_groups(chain, task, threads)
    (down, across), blocks = chain.image, chain.sums.shape[3]
    is_far = chain.weight_bytes > task.isa.caches.second // 2
    is_by_blocks = chain.weight_bytes >= _MANY_WEIGHTS * chain.input_bytes and (
        threads == 1 or _shares_well(chain.image, threads, task.costs)
    )
    if is_by_blocks:
        rows, chunk = down, _even(blocks, -(-blocks // threads))
    else:
        most = down if is_far else max(1, task.accumulators // across)
        rows, chunk = _rows_of_band(chain.image, most, threads, task.costs), blocks
    tiles, count = _register_tile(rows * across, chunk, is_far, task)
    return WinogradChoice(tiles, count, rows, chunk, int(is_by_blocks))


def _choice_of_groups(chain: WinogradChain, task: ScheduleTask, threads: int) -> WinogradChoice:
    """Return the default choice for a grouped convolution: a chunk is a group.

    No group reads the inputs of another one, so groups are outside: weights and inputs are read once. Where
    groups do not keep the threads busy, bands are outside.
    """
    (down, across), groups = chain.image, chain.sums.shape[3] // chain.group_blocks
    is_by_blocks = share_of_time(groups, threads) >= share_of_time(down, threads)
    point_bytes = prod(chain.sums.shape[1:3]) * chain.sums.dtypes[0].numpy.itemsize
    tile_bytes = point_bytes * chain.sums.shape[-1] * (chain.group_blocks + chain.group_inputs)
    most = max(1, task.isa.caches.second // _CACHE_SHARE // (tile_bytes * across))
    rows = min(most, down if is_by_blocks else -(-down // threads))
    tiles, count = _register_tile(rows * across, gcd(chain.group_blocks, _TURN), False, task)
    return WinogradChoice(tiles, count, rows, chain.group_blocks, int(is_by_blocks))


def _shares_well(image: tuple[int, int], threads: int, costs: RelativeCosts) -> bool:
    """Return whether threads are faster by blocks than with a band each; estimated in tiles of products."""
    (down, across), weights = image, _WEIGHT_COST * costs.memory
    by_blocks = down * across * (1 / threads + _SHARING * costs.third) + weights / threads
    return by_blocks <= -(-down // threads) * across + weights


def _rows_of_band(image: tuple[int, int], most: int, threads: int, costs: RelativeCosts) -> int:
    """Return the fewest rows of tiles for which threads are busy, and not with loading weights."""
    (down, across), weights = image, _WEIGHT_COST * costs.memory

    def speed(rows: int) -> float:
        """Estimate the speed relative to threads that compute products all the time."""
        steps = -(-down // rows)
        balance = down / (threads * -(-steps // threads) * rows)
        return balance / (1 + weights / (rows * across))

    speeds = [speed(rows) for rows in range(1, min(most, down) + 1)]
    return next(n for n, speed_of_rows in enumerate(speeds, 1) if speed_of_rows >= _ENOUGH * max(speeds))


def _register_tile(tiles: int, blocks: int, is_far: bool, task: ScheduleTask) -> tuple[int, int]:
    """Return the register tile: all tiles of a band by one block, or fewer tiles by several blocks."""
    if tiles <= task.accumulators and tiles >= task.costs.sums:
        return tiles, 1
    if is_far and blocks % _TURN == 0:
        return _even(tiles, task.accumulators // _TURN), _TURN
    registers = task.isa.vector_registers - 1
    tile = pixel_tile(1, tiles, blocks, task.accumulators, registers, costs=task.costs)
    return tile.pixels, tile.blocks


def _even(extent: int, most: int) -> int:
    """Return the size of pieces of at most `most`, as equal as possible."""
    count = -(-extent // max(1, most))
    return -(-extent // count)


def state_of_choice(chain: WinogradChain, task: ScheduleTask, choice: WinogradChoice) -> LoopState:
    """Return the state of a chain with a choice."""
    is_parallel = task.is_parallel(work_of([chain.sums]))
    state, outer = _with_result_loops(chain.state, chain, choice, is_parallel)
    state = _with_product_loops(state, chain, choice)
    state = state.compute_at(chain.product, chain.target, outer[-1])
    state = _with_input_loops(state, chain)
    if chain.group_blocks:
        reads_one_group = choice.chunk == chain.group_blocks
        for name in filter(None, (chain.pad, chain.inputs)):
            state = state.compute_at(name, chain.target, outer[-1] if reads_one_group else outer[0])
    elif choice.is_by_blocks:
        transformed = [stage for stage in (chain.pad, chain.inputs) if stage]
        for name in transformed if is_parallel else ():
            state = state.parallel(name, 1)
    else:
        state = state.compute_at(chain.inputs, chain.target, outer[-2])
        if chain.pad:
            state = state.compute_at(chain.pad, chain.target, outer[-2])
    return chain.with_rest(state, task)


def _with_result_loops(
    state: LoopState, chain: WinogradChain, choice: WinogradChoice, is_parallel: bool
) -> tuple[LoopState, list[str]]:
    """Order the loops: bands and chunks, then blocks, tiles, and the elements of a tile."""
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
    """Schedule the products: for each point register tiles of tiles by blocks of channels."""
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
    """Schedule the input transforms: for each block of channels and tile, rows, then columns."""
    inputs, rows = chain.inputs, chain.rows
    n, i, j, c, t, v = [loop.name for loop in state[inputs].iters]
    state = state.reorder(inputs, [n, c, t, i, j, v])
    state = state.unroll(inputs, i).unroll(inputs, j).vectorize(inputs, v)
    m, d, u, y, s, k = [loop.name for loop in state[rows].iters]
    state = state.reorder(rows, [m, d, u, s, y, k]).unroll(rows, y).unroll(rows, s).vectorize(rows, k)
    state = state.compute_at(rows, inputs, t)
    return state if chain.pad is None else state.vectorize(chain.pad, state[chain.pad].iters[-1])
