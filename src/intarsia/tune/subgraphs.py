"""Parts of a program as programs of their own."""

from __future__ import annotations

from intarsia.ir import Expr, Function, IRModule, Var, substitute
from intarsia.ir.pattern import ExprPattern, Match, find_matches


def extract_subgraph(mod: IRModule, pattern: ExprPattern) -> tuple[tuple[Match, IRModule], ...]:
    """Return every part of @main that matches a pattern, as the @main of a module (seed relax_pass_infra).

    Inputs of the part become parameters with their types; constants stay.

    Args:
        mod: A typed program.
        pattern: Pattern of the parts; matches may overlap.
    """
    return tuple((match, _module(match)) for match in find_matches(pattern, mod["main"]))


def _module(match: Match) -> IRModule:
    params: dict[Expr, Expr] = {
        given: Var(f"p{number}", checked_type=given.checked_type) for number, given in enumerate(match.inputs)
    }
    body = substitute(match.root, params)
    return IRModule.from_expr(
        Function(tuple(param for param in params.values() if isinstance(param, Var)), body)
    )
