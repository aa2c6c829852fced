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
    """Channels become blocks; DCR has the place in the block outside the channel, CRD inside."""
    x, block = call.input(0), call.integer("blocksize")
    is_outside = call.text("mode", "DCR") == "DCR"
    channels = call.shape[1]

    def element(n: Expression, c: Expression, h: Expression, w: Expression) -> Expression:
        place = (h % block) * block + w % block
        source = place * channels + c if is_outside else c * (block * block) + place
        return x[n, source, h // block, w // block]

    return [compute(call.shape, element, call.name)]


@compute_rule("SpaceToDepth")
def space_to_depth(call: ComputeCall) -> Sequence[Tensor]:
    """Blocks become channels, the place in the block outside the channel."""
    x, block = call.input(0), call.integer("blocksize")
    channels = x.shape[1]

    def element(n: Expression, c: Expression, h: Expression, w: Expression) -> Expression:
        place = c // channels
        return x[n, c % channels, h * block + place // block, w * block + place % block]

    return [compute(call.shape, element, call.name)]
