"""The expressions of @main at which a rule may be applied, by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from intarsia.ir import Expr, Function, IRModule, post_order
from intarsia.ir.pattern import Users
from intarsia.ir.scope import Scope, is_atom, place
from intarsia.op import infer_types
from intarsia.passes.functions.sealed import sealed_scopes


@dataclass(frozen=True, slots=True)
class Dataflow:
    """@main, with its compound expressions in evaluation order.

    Variables, constants and operators are not counted: how often these are stored is no fact of the program,
    so that numbers are the same in every process.

    Attributes:
        mod: The program, with types.
        expressions: The compound expressions; the number of one is its place.
        scopes: Scope of each expression that may be replaced; expressions in functions that are compiled
            separately, or matched for a toolchain, are left out.
        users: Users of each expression.
    """

    mod: IRModule
    expressions: tuple[Expr, ...]
    scopes: dict[Expr, Scope]
    users: Users

    @property
    def main(self) -> Function:
        """The function."""
        return self.mod["main"]

    @classmethod
    def of(cls, mod: IRModule) -> Self:
        """The dataflow of a program; types that are missing are inferred. Linear in the program."""
        expressions = _compound(mod)
        if any(expr.checked_type is None for expr in expressions):
            mod = infer_types(mod)
            expressions = _compound(mod)
        main = mod["main"]
        placed = place(main)
        sealed = sealed_scopes(placed)
        scopes = {
            expr: scope for scope, members in placed.members.items() if not sealed[scope] for expr in members
        }
        return cls(mod, expressions, scopes, Users.below(main))


def _compound(mod: IRModule) -> tuple[Expr, ...]:
    return tuple(expr for expr in post_order(mod["main"]) if not is_atom(expr))
