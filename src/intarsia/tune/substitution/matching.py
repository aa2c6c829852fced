"""Matches of rules in a program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from intarsia.ir import Call, Expr, Op, TupleGetItem, post_order
from intarsia.ir.pattern import ExprPattern, Match, match
from intarsia.ir.pattern.expr_pattern import Constrained, Either, IsCall, IsOp, IsTupleGet, Named
from intarsia.tune.substitution.dataflow import Dataflow
from intarsia.tune.substitution.rule import SubstitutionRule

Positions: TypeAlias = tuple[int, ...]
"""The number of each root, in order (`Dataflow.expressions`)."""

_FIELD = "a field of a tuple"


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """The patterns of a rule at a place.

    Attributes:
        rule: The rule.
        positions: The number of each root.
        parts: The match of each pattern.
    """

    rule: SubstitutionRule
    positions: Positions
    parts: tuple[Match, ...]

    @property
    def names(self) -> dict[str, Expr]:
        """The named parts of all patterns."""
        return {name: expr for part in self.parts for name, expr in part.names.items()}

    @property
    def roots(self) -> tuple[Expr, ...]:
        """The expressions to replace."""
        return tuple(part.root for part in self.parts)


def match_at(rule: SubstitutionRule, positions: Sequence[int], flow: Dataflow) -> RuleMatch | None:
    """Match a rule at a place; None if it does not match.

    Args:
        rule: The rule.
        positions: The number of each root.
        flow: The program.
    """
    if len(positions) != len(rule.sources) or not all(0 <= at < len(flow.expressions) for at in positions):
        return None
    roots = [flow.expressions[at] for at in positions]
    if any(root not in flow.scopes for root in roots):
        return None
    parts = [match(source, root, flow.users) for source, root in zip(rule.sources, roots, strict=True)]
    matches = tuple(part for part in parts if part is not None)
    if len(matches) < len(parts) or not (len(matches) == 1 or _fit(matches, flow)):
        return None
    return RuleMatch(rule, tuple(positions), matches)


def find_rule_matches(flow: Dataflow, rules: Iterable[SubstitutionRule]) -> Iterator[RuleMatch]:
    """All matches of the patterns of rules, in the order of the rules and then of places.

    Linear in the program for rules with one root; for those with two, times the matches that share a part.
    """
    by_operator: dict[str, list[int]] = defaultdict(list)
    for at, expr in enumerate(flow.expressions):
        if expr in flow.scopes:
            by_operator[_kind(expr)].append(at)
    for rule in rules:
        single = [_matches(source, flow, by_operator) for source in rule.sources]
        if len(single) == 1:
            yield from (RuleMatch(rule, (at,), (part,)) for at, part in single[0].items())
        else:
            yield from _pairs(rule, flow, single[0], single[1])


def _matches(source: ExprPattern, flow: Dataflow, by_operator: dict[str, list[int]]) -> dict[int, Match]:
    places = sorted(at for name in _root_kinds(source) for at in by_operator.get(name, ()))
    found = ((at, match(source, flow.expressions[at], flow.users)) for at in places)
    return {at: part for at, part in found if part is not None}


def _pairs(
    rule: SubstitutionRule, flow: Dataflow, first: dict[int, Match], second: dict[int, Match]
) -> Iterator[RuleMatch]:
    """Matches of two patterns, the first of which stands earlier, with one expression behind shared names."""
    partners: dict[tuple[Expr, ...], list[int]] = defaultdict(list)
    shared: list[str] | None = None
    for at, part in first.items():
        for other in second.values():
            shared = sorted(part.names.keys() & other.names.keys()) if shared is None else shared
            break
        partners[tuple(part.names[name] for name in shared or ())].append(at)
    for later, part in second.items():
        for at in partners[tuple(part.names[name] for name in shared or ())]:
            if at < later and _fit((first[at], part), flow):
                yield RuleMatch(rule, (at, later), (first[at], part))


def _fit(parts: tuple[Match, ...], flow: Dataflow) -> bool:
    """Whether two matches agree in what they share, stand in one scope, and do not depend on each other."""
    first, second = parts
    shared = first.names.keys() & second.names.keys()
    if any(first.names[name] is not second.names[name] for name in shared):
        return False
    if flow.scopes[first.root] is not flow.scopes[second.root] or first.root is second.root:
        return False
    return all(expr is not first.root for expr in post_order(second.root)) and all(
        expr is not second.root for expr in post_order(first.root)
    )


def _kind(expr: Expr) -> str:
    match expr:
        case Call(op=Op(name=name, domain="")):
            return name
        case TupleGetItem():
            return _FIELD
        case _:
            return ""


def _root_kinds(source: ExprPattern) -> tuple[str, ...]:
    """Return the kinds of a pattern's root: names of operators, or a field."""
    match source:
        case IsCall(callee=IsOp(names=names)):
            return names
        case IsTupleGet():
            return (_FIELD,)
        case Named(inner=inner) | Constrained(inner=inner):
            return _root_kinds(inner)
        case Either(options=options):
            return tuple(dict.fromkeys(name for option in options for name in _root_kinds(option)))
        case _:
            return ()
