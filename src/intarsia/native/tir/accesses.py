"""The loads and stores of a statement, and whether two of them can touch the same element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import gcd, prod

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    For,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.tir.affine import Affine, Range, bounds
from intarsia.native.tir.simplify_scalar import ScalarSimplifier


@dataclass(frozen=True, slots=True)
class ElementAccess:
    """A load or a store.

    Attributes:
        buffer: The buffer that is accessed.
        indices: Index of the element in each dimension.
        is_store: Whether it is a store.
        loops: Loops around the access inside the statement, outermost first, without their bodies.
        is_guarded: Whether an IfThenElse inside the statement is around the access.
    """

    buffer: Buffer
    indices: tuple[Scalar, ...]
    is_store: bool
    loops: tuple[For, ...]
    is_guarded: bool

    @property
    def ranges(self) -> dict[LoopVar, Range]:
        """Ranges of the counters of the loops around the access."""
        return {loop.var: (0, loop.extent - 1) for loop in self.loops}


@dataclass(slots=True)
class _WalkState:
    loops: list[For] = field(default_factory=list)
    guards: int = 0
    allocated: list[Buffer] = field(default_factory=list)


def accesses(statement: Statement) -> Iterator[ElementAccess]:
    """Yield the accesses inside a statement to buffers from outside of it, in program order."""
    around = _WalkState()
    for visit in walk(statement):
        inner = visit.statement
        if visit.event is Event.ENTER:
            for root in scalars(inner):
                for scalar in inner_scalars(root):
                    if isinstance(scalar, Load) and scalar.buffer not in around.allocated:
                        loops, guards = tuple(around.loops), around.guards > 0
                        yield ElementAccess(scalar.buffer, scalar.indices, False, loops, guards)
            if isinstance(inner, Store) and inner.buffer not in around.allocated:
                yield ElementAccess(inner.buffer, inner.indices, True, tuple(around.loops), around.guards > 0)
        if visit.event is not Event.ELSE:
            _update_state(inner, visit.event is Event.ENTER, around)


def _update_state(statement: Statement, is_begin: bool, around: _WalkState) -> None:
    match statement:
        case For():
            head = replace(statement, body=Block(()))
            around.loops.append(head) if is_begin else around.loops.pop()
        case Allocate():
            around.allocated.append(statement.buffer) if is_begin else around.allocated.pop()
        case IfThenElse():
            around.guards += 1 if is_begin else -1
        case _:
            pass


def affine_subscripts(access: ElementAccess, around: dict[LoopVar, Range]) -> list[Affine]:
    """Return the offset in the flat buffer and the index in each dimension, as affine sums."""
    simplifier = ScalarSimplifier({**around, **access.ranges})
    strides = [prod(access.buffer.shape[position + 1 :]) for position in range(len(access.indices))]
    flat: Scalar = Literal(0, DType.INT64)
    for index, stride in zip(access.indices, strides, strict=True):
        term = Arith(ArithOp.MUL, (index, Literal(stride, DType.INT64)))
        flat = Arith(ArithOp.ADD, (flat, term))
    return [simplifier.linear(scalar) for scalar in (flat, *access.indices)]


def are_disjoint(
    first: ElementAccess, second: ElementAccess, around: dict[LoopVar, Range], var: LoopVar | None = None
) -> bool:
    """Return whether two accesses to one buffer never touch the same element, for all values of their loops.

    Args:
        first: One access.
        second: The other.
        around: Ranges of the counters of the loops around both.
        var: Counter of one more loop around both; the accesses are compared between two of its iterations.
    """
    # Disjoint in one dimension is disjoint; the flat offset decides what no single dimension shows.
    for left, right in zip(affine_subscripts(first, around), affine_subscripts(second, around), strict=True):
        factor = 0 if var is None else left.factor_of(var)
        is_step = var is not None and factor != 0 and right.factor_of(var) == factor
        moving, fixed = _split_terms(left, first, var, is_step)
        other_moving, others_fixed = _split_terms(right, second, var, is_step)
        difference = fixed.plus(others_fixed, -1)
        low, high = bounds(difference, around)
        moving_low, moving_high = bounds(moving, {**around, **first.ranges})
        others_low, others_high = bounds(other_moving, {**around, **second.ranges})
        least, greatest = low + moving_low - others_high, high + moving_high - others_low
        if var is None or not is_step:
            if least > 0 or greatest < 0:
                return True
            continue
        # Both indices move by `factor` per iteration: d iterations apart they meet where factor * d + r == 0.
        farthest = around[var][1] - around[var][0]
        common = gcd(*moving.terms.values(), *other_moving.terms.values(), *difference.terms.values())
        if not _can_be_zero(factor, difference.constant, common, (least, greatest), farthest):
            return True
    return False


def _can_be_zero(factor: int, constant: int, common: int, rest: Range, farthest: int) -> bool:
    """Return whether factor * d + r is 0 for a d with 1 <= |d| <= `farthest` and an r in the range `rest`.

    All r are a constant plus multiples of `common`; if that is 0, r is the constant.
    """
    # The quotients round inwards: ceil(low / |factor|) to floor(high / |factor|).
    low, high = rest if factor < 0 else (-rest[1], -rest[0])  # of abs(factor) * d
    first, last = -(-low // abs(factor)), high // abs(factor)
    for distance in range(max(first, -farthest), min(last, farthest) + 1):
        total = factor * distance + constant
        if distance and (total % common if common else total) == 0:
            return True
    return False


def _split_terms(
    index: Affine, access: ElementAccess, var: LoopVar | None, is_step: bool
) -> tuple[Affine, Affine]:
    """Split an index into terms that differ between two accesses and terms that are equal in both.

    For steps of `var`, multiples of `var` are left out: the caller accounts for them.
    """
    counters = {loop.var for loop in access.loops} | ({var} if var is not None else set())
    moving, fixed = Affine(), Affine({}, index.constant)
    for scalar, factor in index.terms.items():
        if is_step and scalar == var:
            continue
        parts = set(inner_scalars(scalar))
        is_moving = not counters.isdisjoint(parts) or any(isinstance(part, Load) for part in parts)
        (moving if is_moving else fixed).terms[scalar] = factor
    return moving, fixed
