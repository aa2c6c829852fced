"""Reads of scalars, cached by object, since expanded loops repeat the same scalars."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from intarsia.ir.loop_walk import LEAVES, operands
from intarsia.ir.prim_func import Cast, Intrinsic, Load, Scalar
from intarsia.native.emission.types import held_bytes


class ScalarReads(NamedTuple):
    """The reads of a scalar.

    Attributes:
        loads: All loads in it, including those in indices.
        widest: Size in bytes of the widest element in arithmetic, without index arithmetic.
    """

    loads: tuple[Load, ...] = ()
    widest: int = 1


Reads: TypeAlias = dict[int, ScalarReads]
"""Reads by the identity of scalars, which must be kept alive."""

_NOTHING: Final = ScalarReads()


def reads_of(scalar: Scalar, cache: Reads) -> ScalarReads:
    """Return the reads of a scalar.

    Args:
        scalar: The scalar.
        cache: Reads of earlier calls; this call adds to it.
    """
    if isinstance(scalar, LEAVES):
        return _NOTHING
    reads = cache.get(id(scalar))
    if reads is None:
        reads = cache[id(scalar)] = _find(scalar, cache)
    return reads


def _find(scalar: Scalar, cache: Reads) -> ScalarReads:
    loads: tuple[Load, ...] = ()
    widest = 1
    for inner in operands(scalar):
        below = reads_of(inner, cache)
        loads += below.loads
        widest = max(widest, below.widest)
    if isinstance(scalar, Load):
        return ScalarReads((scalar, *loads), held_bytes(scalar.buffer.dtype))
    if isinstance(scalar, Cast | Intrinsic):
        widest = max(widest, held_bytes(scalar.dtype))
    return ScalarReads(loads, widest) if loads or widest > 1 else _NOTHING
