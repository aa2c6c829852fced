"""States whose product is tensorised: its loops become a kernel on tensor cores."""

from __future__ import annotations

from intarsia.ir.warp import MMA_COLUMNS, MMA_ROWS
from intarsia.native.dag import loop_name
from intarsia.native.gpu.tensor_core_product import WarpTiling
from intarsia.native.gpu.tensor_cores import is_tensor_core_product
from intarsia.native.loop_state import IteratorAnnotation, LoopState, Stage
from intarsia.native.loop_state.relation import SplitRelation
from intarsia.native.te import ComputeOp
from intarsia.support.errors import UsageError

_TILE_LENGTHS = 2


def tensorised_tiling(state: LoopState) -> WarpTiling | None:
    """Return the tiles of the product of a state that has tensorised loops; None if no loop is tensorised.

    Both last axes of the product are split in three: blocks, warps, and the tile of a warp.

    Raises:
        UsageError: The loops are not those of a product on tensor cores, or of sizes that it has not.
    """
    for stage in state.stages:
        if any(loop.annotation is IteratorAnnotation.TENSORIZE for loop in stage.iters):
            return _tiling(stage)
    return None


def _tiling(stage: Stage) -> WarpTiling:
    op = stage.op
    if not isinstance(op, ComputeOp) or not is_tensor_core_product(op):
        raise UsageError(f"{op.name} is tensorised, and is no product that tensor cores compute")
    splits = {each.parent: each for each in stage.relations if isinstance(each, SplitRelation)}
    (warps_down, warp_rows), (warps_along, warp_columns) = (
        _lengths(splits.get(loop_name(axis.name)), op.name) for axis in op.axes[-2:]
    )
    tiling = WarpTiling(warps_down * warp_rows, warps_along * warp_columns, warp_rows, warp_columns)
    if warp_rows % MMA_ROWS or warp_columns % MMA_COLUMNS:
        raise UsageError(
            f"{op.name} has tiles of warps of {warp_rows} by {warp_columns}; expected multiples of "
            f"{MMA_ROWS} by {MMA_COLUMNS}"
        )
    return tiling


def _lengths(split: SplitRelation | None, name: str) -> tuple[int, int]:
    lengths = () if split is None else tuple(length for length in split.lengths if length is not None)
    if len(lengths) != _TILE_LENGTHS:
        raise UsageError(f"the axes of {name} are not split into blocks, warps, and tiles of warps")
    return lengths[0], lengths[1]
