"""How much a function computes, and how its rounding errors add up, read off its types."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Call, Expr, Function, IRModule, Op, children, post_order
from intarsia.op.purity import is_random
from intarsia.op.work import is_quantized, multiply_adds, reduction_length


@dataclass(frozen=True, slots=True)
class Work:
    """What a function does, in numbers.

    Attributes:
        multiply_adds: Number of multiply-adds of its convolutions and matrix products; unknown dimensions
            count as 1.
        reduction_length: Terms of its longest sum.
        depth: Sums that follow one another on the longest path.
        quantized: Whether it rounds to integers on the way.
    """

    multiply_adds: int
    reduction_length: int
    depth: int
    quantized: bool


def work_of(module: IRModule) -> Work:
    """The work of all graph functions of a module; linear in its expressions."""
    parts = [_function_work(function) for function in module.graph_functions.values()]
    return Work(
        sum(part.multiply_adds for part in parts),
        max((part.reduction_length for part in parts), default=1),
        sum(part.depth for part in parts) or 1,
        any(part.quantized for part in parts),
    )


def _function_work(function: Function) -> Work:
    total, longest, quantized = 0, 1, False
    depth: dict[Expr, int] = {}
    for expr in post_order(function):
        length = reduction_length(expr)
        depth[expr] = max((depth[child] for child in children(expr)), default=0) + (length > 1)
        longest = max(longest, length)
        quantized |= is_quantized(expr)
        total += multiply_adds(expr)
    return Work(total, longest, depth[function], quantized)


def random_operators(module: IRModule) -> tuple[str, ...]:
    """Return the names of the operators of a module that draw random numbers at each call."""
    names = (
        expr.op.name
        for function in module.graph_functions.values()
        for expr in post_order(function)
        if isinstance(expr, Call) and isinstance(expr.op, Op) and is_random(expr)
    )
    return tuple(dict.fromkeys(names))


def random_text(module: IRModule) -> str:
    """A clause about a module that draws random numbers; "" if it draws none."""
    names = ", ".join(random_operators(module))
    if not names:
        return ""
    return f"the model draws random numbers ({names}), and results that depend on them cannot be checked"
