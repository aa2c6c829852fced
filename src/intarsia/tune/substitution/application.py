"""One rule applied at one place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    children,
    post_order,
    with_children,
    with_fields,
)
from intarsia.op.evaluate import can_evaluate, evaluate_call
from intarsia.op.infer import typed
from intarsia.op.rewrite_typed import over_rewritten
from intarsia.support.errors import ExecutionError, InvalidModelError
from intarsia.target import UNCONSTRAINED
from intarsia.tune.substitution.dataflow import Dataflow
from intarsia.tune.substitution.matching import Positions, RuleMatch, find_rule_matches
from intarsia.tune.substitution.rule import SubstitutionRule

LARGEST_CONSTANT: Final = 64 << 20
"""Bytes up to which results of constants are folded here; FoldConstant has its own limit."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """A rule that can be applied at a place.

    Attributes:
        rule: Its name.
        positions: The number of each root.
        new: The replacement of each root, built from the program's expressions.
    """

    rule: str
    positions: Positions
    new: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{self.rule} at {', '.join(map(str, self.positions))}"


def find_substitutions(flow: Dataflow, rules: Iterable[SubstitutionRule]) -> Iterator[Substitution]:
    """Yield the substitutions of a program, in the order of the rules and then of places."""
    for match in find_rule_matches(flow, rules):
        new = replacements(match)
        if new is not None:
            yield Substitution(match.rule.name, match.positions, new)


def replacements(match: RuleMatch) -> tuple[Expr, ...] | None:
    """Return the replacements of a match's roots; None where the rule does not hold, or a type would change.

    Expressions of constants are folded. There is no replacement for a match on several devices, or with a
    tensor of unknown rank.
    """
    if not _is_on_one_device(match) or not _has_known_ranks(match):
        return None
    roots = match.roots
    names = ("root",) if len(roots) == 1 else ("first", "second")
    try:
        built = match.rule.build({**match.names, **dict(zip(names, roots, strict=True))})
    except InvalidModelError:  # the types do not fit
        return None
    if built is None:
        return None
    new = _finish(built, roots)
    fits = all(
        replacement.checked_type is not None
        and replacement.checked_type == root.checked_type
        and root.virtual_device in (UNCONSTRAINED, replacement.virtual_device)
        and replacement is not root
        for replacement, root in zip(new, roots, strict=True)
    )
    return new if fits else None


def apply_replacement(flow: Dataflow, new: tuple[Expr, ...], positions: Positions) -> IRModule:
    """Replace the roots at a place of a program. Linear in the program.

    Args:
        flow: The program.
        new: The replacement of each root, from `replacements`.
        positions: The number of each root.
    """
    done = {flow.expressions[at]: replacement for at, replacement in zip(positions, new, strict=True)}
    for node in post_order(flow.main):
        if node not in done:
            done[node] = over_rewritten(node, done)
    main = done[flow.main]
    assert isinstance(main, Function)
    return flow.mod.with_function("main", main)


def _is_on_one_device(match: RuleMatch) -> bool:
    covered = [expr for part in match.parts for expr in part.covered]
    operators = (expr.op for expr in covered if isinstance(expr, Call))
    return len({expr.virtual_device for expr in covered}) == 1 and all(
        op.virtual_device == UNCONSTRAINED for op in operators
    )


def _has_known_ranks(match: RuleMatch) -> bool:
    covered = (expr for part in match.parts for expr in part.covered)
    types = (tensor.checked_type for expr in covered for tensor in (expr, *children(expr)))
    return not any(isinstance(type_, TensorType) and type_.shape is None for type_ in types)


def _finish(new: tuple[Expr, ...], roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Infer types of replacements, fold their constants, and copy span and device from the root."""
    known = set(post_order(*roots))
    done: dict[Expr, Expr] = {}
    for node in post_order(*new, stop=known):
        current = typed(with_children(node, tuple(done.get(child, child) for child in children(node))))
        done[node] = _with_facts(_value(current), roots[0])
    return tuple(done.get(one, one) for one in new)


def _with_facts(new: Expr, root: Expr) -> Expr:
    if isinstance(new, Op):
        return new
    device = root.virtual_device if new.virtual_device == UNCONSTRAINED else new.virtual_device
    return with_fields(new, span=new.span or root.span, virtual_device=device)


def _value(expr: Expr) -> Expr:
    if not isinstance(expr, Call) or not can_evaluate(expr):
        return expr
    try:
        value = evaluate_call(expr)
    except ExecutionError:
        return expr
    if isinstance(value, tuple) or value.nbytes > LARGEST_CONSTANT:
        return expr
    return Constant(value)
