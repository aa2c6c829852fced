"""RotaryEmbedding."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import if_then_else, select
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.index_arithmetic import wrapped
from intarsia.native.te.tensor import Tensor


@compute_rule("RotaryEmbedding")
@in_float32
def rotary_embedding(call: ComputeCall) -> Sequence[Tensor]:
    """Declare pairs of elements rotated by the angle of their position (J. Su et al., RoFormer, 2021)."""
    x = call.input(0)
    has_heads = len(x.shape) == 4
    heads = x.shape[1] if has_heads else call.integer("num_heads", 0)
    if heads == 0:
        raise call.not_covered("an unknown number of heads")
    call.refuse_outside(3, call.input(1).shape[:1])
    size = x.shape[-1] if has_heads else x.shape[-1] // heads
    turned = call.integer("rotary_embedding_dim", 0) or size
    is_interleaved = bool(call.integer("interleaved", 0))

    def element(*i: Expression) -> Expression:
        depth = i[-1] if has_heads else i[-1] % size
        found = _turned(call, i, depth, turned, is_interleaved)
        return found if turned == size else if_then_else(depth < turned, found, x[i])

    return [compute(call.shape, element, call.name)]


def _turned(
    call: ComputeCall, i: tuple[Expression, ...], depth: Expression, turned: int, is_interleaved: bool
) -> Expression:
    x, half = call.input(0), turned // 2
    distance = 1 if is_interleaved else half
    is_second = depth % 2 >= 1 if is_interleaved else depth >= half
    pair = depth // 2 if is_interleaved else depth % half
    cosine, sine = (_angle(call, position, i, pair) for position in (1, 2))
    other = (*i[:-1], select(is_second, i[-1] - distance, i[-1] + distance))
    return cosine * x[i] + select(is_second, sine, -sine) * x[other]


def _angle(call: ComputeCall, position: int, i: tuple[Expression, ...], pair: Expression) -> Expression:
    """Return the cosine or sine of a pair, from a table of positions or of the batch."""
    table, step = call.input(position), i[-2]
    if not call.has_input(3):
        return table[i[0], step, pair]
    row = call.input(3)[i[0], step]
    return table[wrapped(row, table.shape[0]), pair]
