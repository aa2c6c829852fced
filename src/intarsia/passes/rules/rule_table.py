"""What a rewrite rule is, and tables of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

from intarsia.ir import Call, Expr

Rule: TypeAlias = Callable[[Call], Expr | None]
"""Given a typed call of an operator that the table names, what has the same value, or None."""

IsPrivate: TypeAlias = Callable[[Expr], bool]
"""Whether an argument of the call is used by nothing else: it goes away if the call does not use it."""

SharingRule: TypeAlias = Callable[[Call, IsPrivate], Expr | None]
"""A rule that pays only if some argument goes away."""

R = TypeVar("R")
RuleTable: TypeAlias = Mapping[str, tuple[Rule, ...]]
SharingRuleTable: TypeAlias = Mapping[str, tuple[SharingRule, ...]]


def merged(tables: Iterable[Mapping[str, tuple[R, ...]]]) -> dict[str, tuple[R, ...]]:
    """One table of all rules, those of earlier tables first."""
    merged_rules: dict[str, tuple[R, ...]] = {}
    for table in tables:
        for name, rules in table.items():
            merged_rules[name] = (*merged_rules.get(name, ()), *rules)
    return merged_rules


def rules_for(names: str, *rules: Rule) -> RuleTable:
    """The same rules for several operators, whose names are separated by spaces."""
    return dict.fromkeys(names.split(), rules)
