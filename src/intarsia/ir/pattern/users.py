"""The users of an expression."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from intarsia.ir.expr import Expr
from intarsia.ir.scope import is_atom
from intarsia.ir.traversal import children, post_order


@dataclass(frozen=True, slots=True)
class Users:
    """The direct users of every compound expression below a root, in evaluation order, each once.

    Attributes:
        root: Root of the program; its own users, if any, are not known.
        of: The users by expression; variables, constants and operators are left out.
    """

    root: Expr
    of: dict[Expr, tuple[Expr, ...]]

    @classmethod
    def below(cls, root: Expr) -> Users:
        """All users below a root. Linear in nodes and edges."""
        users_of: dict[Expr, dict[Expr, None]] = {}
        for expr in post_order(root):
            if not is_atom(expr):
                users_of.setdefault(expr, {})
            for child in children(expr):
                if not is_atom(child):
                    users_of[child][expr] = None
        return cls(root, {expr: tuple(users) for expr, users in users_of.items()})

    def all_in(self, expr: Expr, inside: Container[Expr]) -> bool:
        """Whether every use of an expression is known, and by one of `inside`; the root is used outside."""
        return expr is not self.root and expr in self.of and all(user in inside for user in self.of[expr])
