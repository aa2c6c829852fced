"""Taking scalars apart and putting them together again, without recursion; what is shared stays shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.ir.loop_walk import operands
from intarsia.ir.prim_func import Arith, Cast, Intrinsic, Load, Scalar


def with_operands(scalar: Scalar, given: Sequence[Scalar]) -> Scalar:
    """The same operator on other operands; the same object if they are the same objects."""
    before = operands(scalar)
    if all(new is old for new, old in zip(given, before, strict=True)):
        return scalar
    match scalar:
        case Load():
            return Load(scalar.buffer, tuple(given))
        case Arith():
            return Arith(scalar.op, tuple(given))
        case Intrinsic():
            return Intrinsic(scalar.name, tuple(given), scalar.dtype)
        case Cast():
            return Cast(given[0], scalar.dtype)
        case _:
            return scalar


def post_order(root: Scalar, below: Callable[[Scalar], tuple[Scalar, ...]] = operands) -> list[Scalar]:
    """Every scalar once, each after those that `below` says are inside it."""
    found: list[Scalar] = []
    seen: set[int] = set()
    stack: list[tuple[Scalar, bool]] = [(root, False)]
    while stack:
        scalar, is_done = stack.pop()
        if is_done:
            found.append(scalar)
        elif id(scalar) not in seen:
            seen.add(id(scalar))
            inside = below(scalar)
            if inside:
                stack.append((scalar, True))
                stack.extend((each, False) for each in reversed(inside))
            else:
                found.append(scalar)
    return found


def rewrite(root: Scalar, rule: Callable[[Scalar], Scalar]) -> Scalar:
    """A scalar rewritten from its leaves on: the rule sees each with its operands rewritten."""
    made: dict[int, Scalar] = {}
    for scalar in post_order(root):
        made[id(scalar)] = rule(with_operands(scalar, [made[id(each)] for each in operands(scalar)]))
    return made[id(root)]
