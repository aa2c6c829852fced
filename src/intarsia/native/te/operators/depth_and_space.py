"""DepthToSpace and SpaceToDepth: blocks of pixels as channels, and back."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.tensor import Tensor


@compute_rule("DepthToSpace")
def depth_to_space(call: ComputeCall) -> Sequence[Tensor]:
    """Declare channels moved into blocks; in DCR, the position in the block is the outer index."""
    x, block = call.input(0), call.integer("blocksize")
    is_outside = call.text("mode", "DCR") == "DCR"
    channels = call.shape[1]

    def element(n: Expression, c: Expression, h: Expression, w: Expression) -> Expression:
        position = (h % block) * block + w % block
        source = position * channels + c if is_outside else c * (block * block) + position
        return x[n, source, h // block, w // block]

    return [compute(call.shape, element, call.name)]


@compute_rule("SpaceToDepth")
def space_to_depth(call: ComputeCall) -> Sequence[Tensor]:
    """Declare blocks moved into channels; the position in the block is the outer index."""
    x, block = call.input(0), call.integer("blocksize")
    channels = x.shape[1]

    def element(n: Expression, c: Expression, h: Expression, w: Expression) -> Expression:
        position = c // channels
        return x[n, c % channels, h * block + position // block, w * block + position % block]

    return [compute(call.shape, element, call.name)]
