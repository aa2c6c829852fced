"""Substitution rules, and the registry of all of them."""

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
"""Builds an equivalent of each root; None where the condition of the rule does not hold.

Its parameters select what it gets by name: the root (`root`; of two, `first` and `second`) and named parts of
the patterns.
"""

A, B, C, D = (wildcard().named(name) for name in "abcd")
"""Wildcards with the names under which replacements get their values."""


@dataclass(frozen=True, slots=True)
class SubstitutionRule:
    """Patterns of sub-graphs and their equivalent replacement (TASO: a graph substitution).

    A rule holds for every program of the types that it sees. That a replacement has exactly the type of what
    it replaces, named dimensions included, need not be said: a substitution that changes a type is no match.

    Attributes:
        name: Name of the rule in traces.
        sources: A pattern for each root. Parts of the same name must match the same expression in all.
        replace: The condition and the replacement.
        text: Description, with a program before and after.
    """

    name: str
    sources: tuple[ExprPattern, ...]
    replace: Replacement
    text: str

    def build(self, parts: Mapping[str, Expr]) -> tuple[Expr, ...] | None:
        """Build the replacement of each root; None where the condition does not hold.

        Args:
            parts: The roots and the named parts.

        Raises:
            InvalidModelError: The replacement is ill-typed.
        """
        parameters = inspect.signature(self.replace).parameters
        built = self.replace(**{name: expr for name, expr in parts.items() if name in parameters})
        return (built,) if isinstance(built, Expr) else built

    def __str__(self) -> str:
        return self.name


RULES: Final[Registry[SubstitutionRule]] = Registry("substitution rule", "intarsia.substitution_rules")
"""The rules of this package, and of installed packages."""


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
