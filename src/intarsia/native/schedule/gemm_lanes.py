"""Matrix products whose vectors run along the sums: partial sums in lanes, added up for each tile.

for blocks of tiles, for tiles
  for vectors of k
    for rows of the tile, for columns of the tile, unrolled
      for lanes, vectorised
        sums += left * right
  for half of the lanes, a quarter ...
    for rows, for columns, unrolled
      halves = sums + sums
  for rows, for columns: result = what follows(the last)

Both matrices are read in place, so a transposed right matrix is not packed. The saving grows with the
elements of the matrix, and the cost of the horizontal sums with the elements of the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.dag.gemm_form import GemmForm
from intarsia.native.loop_state import LoopState


def lane_parts(state: LoopState, product: str, lanes: int) -> tuple[LoopState, tuple[str, ...]]:
    """Add stages for the partial sums of a product, each half as long as the previous one.

    Args:
        state: State in which the product has its declared loops.
        product: Name of the product's stage.
        lanes: Number of elements of a vector.

    Returns:
        The state, and the names of the new stages, that of whole vectors first.
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
    """Schedule partial sums and the product inside the loop over tiles of the result.

    Args:
        state: State after `lane_parts`, in which the result is scheduled.
        product: Name of the product's stage.
        parts: Names of the stages of partial sums.
        form: Product of matrices.
        result: Name of the stage that has the loops over tiles and computes the epilogue.
    """
    rank = len(form.op.axes)
    tile = [position for position in (form.row, form.column) if position is not None]
    for name in (*parts, product):
        loops = [loop.name for loop in state[name].iters]
        outer = [loops[position] for position in range(rank) if position not in tile]
        inner, (*lane, k) = [loops[position] for position in tile], loops[rank:]
        is_first = name == parts[0]
        order = [k, *inner, *lane] if is_first else [*inner, k, *lane]
        state = state.reorder(name, [*outer, *order])
        for loop in inner if is_first else (*inner, k):
            state = state.unroll(name, loop)
        for loop in lane:
            state = state.vectorize(name, loop)
    position = len(state[result].iters) - len(tile) - 1
    for name in (product, *reversed(parts)):
        state = state.compute_at(name, result, position)
    return state
