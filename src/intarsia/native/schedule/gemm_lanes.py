"""Products of matrices whose vectors run along the sums: partial sums in lanes, added up for each tile.

for blocks of tiles, for tiles
  for vectors of k
    for rows of the tile, for columns of the tile, unrolled
      for lanes, vectorised
        sums += left * right
  for half of the lanes, a quarter ...
    for rows, for columns, unrolled
      halves = sums + sums
  for rows, for columns: result = what follows(the last)

Both matrices are read as they lie: nothing of a transposed right matrix is moved. What that saves grows with
the elements of the matrix, and what the lanes cost with the elements of the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.loop_state import LoopState
from intarsia.native.schedule.gemm_form import GemmForm


def lane_parts(state: LoopState, product: str, lanes: int) -> tuple[LoopState, tuple[str, ...]]:
    """With the partial sums of a product in stages of their own, each half as long as the one before.

    Args:
        state: Where the product has its declared loops.
        product: Its stage.
        lanes: Elements of a vector.

    Returns:
        The state, and the names of these stages, that of whole vectors first.
    """
    names, width = list[str](), lanes
    while width > 1:
        loops = state[product].iters
        split = state.split(product, loops[-1], [width])
        state = split.rfactor(product, split[product].iters[-1], len(loops) - 1)
        names.append(state.stages[state.stage_id(product) - 1].op.name)
        width //= 2
    return state, tuple(names)


def with_lane_loops(
    state: LoopState, product: str, parts: Sequence[str], form: GemmForm, result: str
) -> LoopState:
    """With the loops of partial sums and of the product, inside the loop over tiles of the result.

    Args:
        state: As `lane_parts` leaves it; the result has its loops.
        product: Its stage.
        parts: The stages of partial sums.
        form: The product.
        result: The stage that has the loops over tiles; what follows is computed there.
    """
    rank = len(form.op.axes)
    tile = [place for place in (form.row, form.column) if place is not None]
    for name in (*parts, product):
        loops = [loop.name for loop in state[name].iters]
        outer = [loops[place] for place in range(rank) if place not in tile]
        inner, (*lane, k) = [loops[place] for place in tile], loops[rank:]
        is_first = name == parts[0]
        order = [k, *inner, *lane] if is_first else [*inner, k, *lane]
        state = state.reorder(name, [*outer, *order])
        for loop in inner if is_first else (*inner, k):
            state = state.unroll(name, loop)
        for loop in lane:
            state = state.vectorize(name, loop)
    place = len(state[result].iters) - len(tile) - 1
    for name in (product, *reversed(parts)):
        state = state.compute_at(name, result, place)
    return state
