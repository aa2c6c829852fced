"""What a statement loads and stores, and whether two accesses can meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd, prod

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
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
        buffer: What is accessed.
        indices: Where.
        is_store: Whether it is a store.
        loops: The loops around it, outermost first, as far as they stand inside the statement; without
        bodies. is_guarded: Whether an IfThenElse of the statement is around it.
    """

    buffer: Buffer
    indices: tuple[Scalar, ...]
    is_store: bool
    loops: tuple[For, ...]
    is_guarded: bool

    @property
    def ranges(self) -> dict[LoopVar, Range]:
        """Values of the counters of its loops."""
        return {loop.var: (0, loop.extent - 1) for loop in self.loops}


@dataclass(slots=True)
class _Around:
    loops: list[For] = field(default_factory=list)
    guards: int = 0
    own: list[Buffer] = field(default_factory=list)


def accesses(statement: Statement) -> Iterator[ElementAccess]:
    """The accesses inside a statement to buffers from outside of it, in the order of the text."""
    around = _Around()
    for visit in walk(statement):
        inner = visit.statement
        if visit.event is Event.ENTER:
            for root in scalars(inner):
                for scalar, _ in scalar_post_order(root):
                    if isinstance(scalar, Load) and scalar.buffer not in around.own:
                        loops, guards = tuple(around.loops), around.guards > 0
                        yield ElementAccess(scalar.buffer, scalar.indices, False, loops, guards)
            if isinstance(inner, Store) and inner.buffer not in around.own:
                yield ElementAccess(inner.buffer, inner.indices, True, tuple(around.loops), around.guards > 0)
        if visit.event is not Event.ELSE:
            _follow(inner, visit.event is Event.ENTER, around)


def _follow(statement: Statement, is_begin: bool, around: _Around) -> None:
    match statement:
        case For():
            head = For(statement.var, statement.extent, Block(()), statement.kind)
            around.loops.append(head) if is_begin else around.loops.pop()
        case Allocate():
            around.own.append(statement.buffer) if is_begin else around.own.pop()
        case IfThenElse():
            around.guards += 1 if is_begin else -1
        case _:
            pass


def places(access: ElementAccess, around: dict[LoopVar, Range]) -> list[Affine]:
    """Its indices as sums, and its place in the flat buffer."""
    simplifier = ScalarSimplifier({**around, **access.ranges})
    strides = [prod(access.buffer.shape[position + 1 :]) for position in range(len(access.indices))]
    flat: Scalar = Literal(0, DType.INT64)
    for index, stride in zip(access.indices, strides, strict=True):
        term = Arith(ArithOp.MUL, (index, Literal(stride, DType.INT64)))
        flat = Arith(ArithOp.ADD, (flat, term))
    return [simplifier.linear(scalar) for scalar in (flat, *access.indices)]


def are_apart(
    first: ElementAccess, second: ElementAccess, around: dict[LoopVar, Range], var: LoopVar | None = None
) -> bool:
    """Whether two accesses to one buffer never meet, whatever the counters of their own loops are.

    Args:
        first: One access.
        second: The other.
        around: Ranges of the counters of the loops around both.
        var: If given, the counter of one more loop around both; its value then differs between the two.
    """
    for one, other in zip(places(first, around), places(second, around), strict=True):
        factor = 0 if var is None else one.factor_of(var)
        is_step = var is not None and factor != 0 and other.factor_of(var) == factor
        own, fixed = _split(one, first, var, is_step)
        others_own, others_fixed = _split(other, second, var, is_step)
        difference = fixed.plus(others_fixed, -1)
        low, high = bounds(difference, around)
        own_low, own_high = bounds(own, {**around, **first.ranges})
        others_low, others_high = bounds(others_own, {**around, **second.ranges})
        least, greatest = low + own_low - others_high, high + own_high - others_low
        if var is None or not is_step:
            if least > 0 or greatest < 0:
                return True
            continue
        farthest = around[var][1] - around[var][0]
        common = gcd(*own.terms.values(), *others_own.terms.values(), *difference.terms.values())
        if not _can_be_zero(factor, difference.constant, common, (least, greatest), farthest):
            return True
    return False


def _can_be_zero(factor: int, constant: int, common: int, rest: Range, farthest: int) -> bool:
    """Whether factor * d + r is 0 for a d from 1 to `farthest`, up or down, and an r in the range `rest`.

    All r are a constant plus multiples of `common`; if that is 0, r is the constant.
    """
    low, high = rest if factor < 0 else (-rest[1], -rest[0])  # of abs(factor) * d
    first, last = -(-low // abs(factor)), high // abs(factor)
    for distance in range(max(first, -farthest), min(last, farthest) + 1):
        total = factor * distance + constant
        if distance and (total % common if common else total) == 0:
            return True
    return False


def _split(place: Affine, access: ElementAccess, var: LoopVar | None, is_step: bool) -> tuple[Affine, Affine]:
    """What may differ between two accesses, and what is the same; of steps, without multiples of `var`."""
    moving = {loop.var for loop in access.loops} | ({var} if var is not None else set())
    own, fixed = Affine(), Affine({}, place.constant)
    for scalar, factor in place.terms.items():
        if is_step and scalar == var:
            continue
        parts = {part for part, _ in scalar_post_order(scalar)}
        is_moving = not moving.isdisjoint(parts) or any(isinstance(part, Load) for part in parts)
        (own if is_moving else fixed).terms[scalar] = factor
    return own, fixed
