"""What a substitution rule is, and the table of all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from intarsia.ir import Expr
from intarsia.ir.pattern import ExprPattern, wildcard
from intarsia.support.errors import UsageError
from intarsia.support.registry import Registry

Replacement: TypeAlias = Callable[..., Expr | tuple[Expr, ...] | None]
"""Makes what has the same value as each root; None where the condition of the rule does not hold.

It takes, by name, the root (`root`; of two, `first` and `second`) and the named parts of the patterns, as
far as it asks for them.
"""

A, B, C, D = (wildcard().named(name) for name in "abcd")
"""Any values, by the names under which replacements get them."""


@dataclass(frozen=True, slots=True)
class SubstitutionRule:
    """Sub-graphs that fit patterns, and what computes the same (TASO: a graph substitution).

    A rule holds for every program of the types that it sees. That a replacement has exactly the type of what
    it replaces, named dimensions included, need not be said: a substitution that changes a type is no match.

    Attributes:
        name: By which traces refer to it.
        sources: A pattern for each root. Parts with one name are one expression in all of them.
        replace: The condition and the replacement.
        text: What it does, with a program before and after it.
    """

    name: str
    sources: tuple[ExprPattern, ...]
    replace: Replacement
    text: str

    def build(self, parts: Mapping[str, Expr]) -> tuple[Expr, ...] | None:
        """What replaces each root; None where the condition does not hold.

        Args:
            parts: The roots and the named parts.

        Raises:
            InvalidModelError: What is built has no type.
        """
        wanted = inspect.signature(self.replace).parameters
        found = self.replace(**{name: expr for name, expr in parts.items() if name in wanted})
        return (found,) if isinstance(found, Expr) else found

    def __str__(self) -> str:
        return self.name


RULES: Final[Registry[SubstitutionRule]] = Registry("substitution rule", "intarsia.substitution_rules")
"""Those of this package, and those of installed packages."""


def substitution(*sources: ExprPattern) -> Callable[[Replacement], SubstitutionRule]:
    """Register a function as the replacement of a rule with its name.

    Args:
        sources: A pattern for each root.

    Raises:
        UsageError: The name is taken, or the function does not show a program before and after.
    """

    def registered(function: Replacement) -> SubstitutionRule:
        name, text = function.__name__, inspect.getdoc(function) or ""
        if "\nBefore:\n" not in text or "\nAfter:\n" not in text:
            raise UsageError(f"rule {name} has no Before and After in its docstring")
        return RULES.register(name, SubstitutionRule(name, sources, function, text))

    return registered
