"""Attention as a group of operators that engines run as one."""

from __future__ import annotations

from collections.abc import Callable

from intarsia.ir import Call
from intarsia.ir.pattern import ExprPattern, Match, is_constant, is_op, wildcard
from intarsia.op.pattern_table import CompositePattern


def attention(supports: Callable[[Call], bool]) -> CompositePattern:
    """Return the row of attention: two products, and the softmax between them, scaled and masked or not.

    Queries, keys and values come from different branches, so that no cut of the graph in two separates it.

    Args:
        supports: Operator predicate of the toolchain, which must hold for every operator of a match.
    """

    def has_all(match: Match) -> bool:
        return all(supports(expr) for expr in match.covered if isinstance(expr, Call))

    return CompositePattern("attention", _pattern(), has_all)


def _pattern() -> ExprPattern:
    scores = is_op("MatMul")(wildcard(), wildcard())
    scaled = scores.optional(lambda product: is_op("Mul")(product, is_constant()))
    divided = scaled.optional(lambda product: is_op("Div")(product, is_constant()))
    masked = divided.optional(lambda product: is_op("Add")(product, wildcard()))
    return is_op("MatMul")(is_op("Softmax")(masked), wildcard())
