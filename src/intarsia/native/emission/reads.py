"""Reads of scalars and statements, cached by object, since expanded loops repeat the same scalars."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from intarsia.ir.loop_walk import LEAVES, operands, scalars
from intarsia.ir.prim_func import Cast, Intrinsic, Load, Scalar, Statement
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
"""Reads by the identity of scalars and statements, which must be kept alive."""

_NOTHING: Final = ScalarReads()


def reads_of_statement(statement: Statement, cache: Reads) -> ScalarReads:
    """Return the reads of a statement's scalars, without those of nested statements.

    Args:
        statement: The statement.
        cache: Reads of earlier calls; this call adds to it.
    """
    reads = cache.get(id(statement))
    if reads is None:
        reads = cache[id(statement)] = _joined(scalars(statement), cache)
    return reads


def _joined(parts: tuple[Scalar, ...], cache: Reads) -> ScalarReads:
    """Return the reads of scalars that are evaluated in order."""
    joined = _NOTHING
    for part in parts:
        if isinstance(part, LEAVES):  # most indices: not worth a call
            continue
        reads = cache.get(id(part))
        if reads is None:
            reads = cache[id(part)] = _find(part, cache)
        if joined is _NOTHING:
            joined = reads
        elif reads is not _NOTHING:
            joined = ScalarReads(joined.loads + reads.loads, max(joined.widest, reads.widest))
    return joined


def _find(scalar: Scalar, cache: Reads) -> ScalarReads:
    loads, widest = _joined(operands(scalar), cache)
    if isinstance(scalar, Load):
        return ScalarReads((scalar, *loads), held_bytes(scalar.buffer.dtype))
    if isinstance(scalar, Cast | Intrinsic):
        widest = max(widest, held_bytes(scalar.dtype))
    return ScalarReads(loads, widest) if loads or widest > 1 else _NOTHING
