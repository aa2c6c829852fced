"""What scalars read: found once for each object, as written out loops have the same ones over and over."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from intarsia.ir.loop_walk import LEAVES, operands
from intarsia.ir.prim_func import Cast, Intrinsic, Load, Scalar
from intarsia.native.emission.types import held_bytes


class ScalarReads(NamedTuple):
    """What a scalar reads.

    Attributes:
        loads: Every load in it, those in indices too.
        widest: Bytes of the widest element that is computed with; what only says where it reads is not
            counted.
    """

    loads: tuple[Load, ...] = ()
    widest: int = 1


Reads: TypeAlias = dict[int, ScalarReads]
"""Of scalars by identity, which must be kept alive."""

_NOTHING: Final = ScalarReads()


def reads_of(scalar: Scalar, known: Reads) -> ScalarReads:
    """What a scalar reads.

    Args:
        scalar: The scalar.
        known: Of earlier calls; those of this one are added.
    """
    if isinstance(scalar, LEAVES):
        return _NOTHING
    found = known.get(id(scalar))
    if found is None:
        found = known[id(scalar)] = _find(scalar, known)
    return found


def _find(scalar: Scalar, known: Reads) -> ScalarReads:
    loads: tuple[Load, ...] = ()
    widest = 1
    for inner in operands(scalar):
        below = reads_of(inner, known)
        loads += below.loads
        widest = max(widest, below.widest)
    if isinstance(scalar, Load):
        return ScalarReads((scalar, *loads), held_bytes(scalar.buffer.dtype))
    if isinstance(scalar, Cast | Intrinsic):
        widest = max(widest, held_bytes(scalar.dtype))
    return ScalarReads(loads, widest) if loads or widest > 1 else _NOTHING
