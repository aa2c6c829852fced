"""Parts of a program as programs of their own."""

from __future__ import annotations

from intarsia.ir import Expr, Function, IRModule, Var, substitute
from intarsia.ir.pattern import ExprPattern, Match, find_matches


def extract_subgraph(mod: IRModule, pattern: ExprPattern) -> tuple[tuple[Match, IRModule], ...]:
    """Every part of @main that matches a pattern, as a module whose @main it is (seed relax_pass_infra).

    What it reads are parameters, with the types that are known; constants stay.

    Args:
        mod: A typed program.
        pattern: What to look for; matches may overlap.
    """
    return tuple((match, _module(match)) for match in find_matches(pattern, mod["main"]))


def _module(match: Match) -> IRModule:
    params: dict[Expr, Expr] = {
        given: Var(f"p{place}", checked_type=given.checked_type) for place, given in enumerate(match.inputs)
    }
    body = substitute(match.root, params)
    return IRModule.from_expr(
        Function(tuple(param for param in params.values() if isinstance(param, Var)), body)
    )
