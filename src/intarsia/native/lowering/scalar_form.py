"""Taking scalars apart and putting them together again, without recursion; what is shared stays shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.ir.loop_walk import operands
from intarsia.ir.prim_func import Arith, Cast, Intrinsic, Load, Scalar


def with_operands(scalar: Scalar, given: Sequence[Scalar]) -> Scalar:
    """The same operator on other operands; the same object if they are the same objects."""
    for new, old in zip(given, operands(scalar), strict=True):
        if new is not old:
            break
    else:
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
    stack: list[Scalar | None] = [root]
    opened: list[Scalar] = []  # for each None of the stack, what ends there
    while stack:
        scalar = stack.pop()
        if scalar is None:
            found.append(opened.pop())
        elif id(scalar) not in seen:
            seen.add(id(scalar))
            inside = below(scalar)
            if inside:
                opened.append(scalar)
                stack.append(None)
                stack.extend(inside[::-1])
            else:
                found.append(scalar)
    return found


def rewrite(root: Scalar, rule: Callable[[Scalar], Scalar]) -> Scalar:
    """A scalar rewritten from its leaves on: the rule sees each with its operands rewritten."""
    made: dict[int, Scalar] = {}
    for scalar in post_order(root):
        made[id(scalar)] = rule(with_operands(scalar, [made[id(each)] for each in operands(scalar)]))
    return made[id(root)]
