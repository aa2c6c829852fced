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
from intarsia.tune.substitution.matching import Place, RuleMatch, find_rule_matches
from intarsia.tune.substitution.rule import SubstitutionRule

LARGEST_CONSTANT: Final = 64 << 20
"""Bytes; a larger result of constants is computed when the program runs, or by FoldConstant."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """A rule that can be applied at a place.

    Attributes:
        rule: Its name.
        place: The number of each root.
        new: What replaces each root, built of the program's expressions.
    """

    rule: str
    place: Place
    new: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{self.rule} at {', '.join(map(str, self.place))}"


def find_substitutions(flow: Dataflow, rules: Iterable[SubstitutionRule]) -> Iterator[Substitution]:
    """All that can be substituted in a program, in the order of the rules and then of places."""
    for found in find_rule_matches(flow, rules):
        new = replacements(found)
        if new is not None:
            yield Substitution(found.rule.name, found.place, new)


def replacements(found: RuleMatch) -> tuple[Expr, ...] | None:
    """What replaces the roots of a match; None where the rule does not hold, or a type would change.

    What is computed from constants alone is a constant. What is placed on several devices stays, and so do
    tensors of which not even the rank is known.
    """
    if not _is_on_one_device(found) or not _has_known_ranks(found):
        return None
    roots = found.roots
    names = ("root",) if len(roots) == 1 else ("first", "second")
    try:
        made = found.rule.build({**found.names, **dict(zip(names, roots, strict=True))})
    except InvalidModelError:  # the types do not fit
        return None
    if made is None:
        return None
    new = _finish(made, roots)
    fits = all(
        one.checked_type is not None
        and one.checked_type == root.checked_type
        and root.virtual_device in (UNCONSTRAINED, one.virtual_device)
        and one is not root
        for one, root in zip(new, roots, strict=True)
    )
    return new if fits else None


def apply_replacement(flow: Dataflow, new: tuple[Expr, ...], place: Place) -> IRModule:
    """The program with a replacement in the place of each root. Linear in the program.

    Args:
        flow: The program.
        new: What `replacements` has found.
        place: The number of each root.
    """
    done = {flow.expressions[at]: one for at, one in zip(place, new, strict=True)}
    for node in post_order(flow.main):
        if node not in done:
            done[node] = over_rewritten(node, done)
    main = done[flow.main]
    assert isinstance(main, Function)
    return flow.mod.with_function("main", main)


def _is_on_one_device(found: RuleMatch) -> bool:
    covered = [expr for part in found.parts for expr in part.covered]
    operators = (expr.op for expr in covered if isinstance(expr, Call))
    return len({expr.virtual_device for expr in covered}) == 1 and all(
        op.virtual_device == UNCONSTRAINED for op in operators
    )


def _has_known_ranks(found: RuleMatch) -> bool:
    covered = (expr for part in found.parts for expr in part.covered)
    types = (each.checked_type for expr in covered for each in (expr, *children(expr)))
    return not any(isinstance(type_, TensorType) and type_.shape is None for type_ in types)


def _finish(new: tuple[Expr, ...], roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """What a rule has built, with constants computed and with the facts of what it replaces."""
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
