"""Functions with a sealed inside: compiled on their own, fused, or matched for a toolchain."""

from __future__ import annotations

from typing import Final

from intarsia.ir import Expr, Function
from intarsia.ir.scope import Scope, ScopedProgram

SEALED: Final = ("Compiler", "Primitive", "Composite")
"""Attributes that say so; such a function is called in place, as if it were an operator."""


def is_sealed(expr: Expr) -> bool:
    """Whether an expression is a function with one of those attributes."""
    return isinstance(expr, Function) and any(name in expr.attrs for name in SEALED)


def sealed_scopes(placed: ScopedProgram) -> dict[Scope, bool]:
    """For each scope, whether it is in such a function."""
    openers = {scope: expr for (expr, _), scope in placed.inner.items()}
    sealed: dict[Scope, bool] = {}
    for scope in placed.members:  # enclosing scopes come first
        inherited = scope.parent is not None and sealed[scope.parent]
        sealed[scope] = inherited or (scope in openers and is_sealed(openers[scope]))
    return sealed
