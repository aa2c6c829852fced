"""A pattern against an expression: what is covered, what flows in, and the parts that have names.

Alternatives are tried in order, with backtracking. A match costs the number of ways in which alternatives
combine, times the size of the pattern; that does not depend on the program, but for `dominates`.
The recursion is over the pattern, never over the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import assert_never

from intarsia.ir.expr import Call, Constant, Expr, Op, Tuple, TupleGetItem, Var
from intarsia.ir.pattern.constraint import holds
from intarsia.ir.pattern.dominance import between
from intarsia.ir.pattern.expr_pattern import (
    Absent,
    Constrained,
    Dominates,
    Either,
    ExprPattern,
    IsCall,
    IsConstant,
    IsOp,
    IsTuple,
    IsTupleGet,
    IsVar,
    Named,
    Wildcard,
)
from intarsia.ir.pattern.users import Users
from intarsia.ir.scope import is_atom
from intarsia.ir.traversal import children, post_order

_LEFT_OUT = Tuple(())


@dataclass(frozen=True, slots=True)
class Match:
    """Where a pattern fits.

    Attributes:
        root: The expression that the whole pattern stands for.
        covered: The calls, tuples and fields that parts of the pattern stand for, each after what it uses.
            What a wildcard stands for is not covered.
        names: The expressions of the named parts.
    """

    root: Expr
    covered: tuple[Expr, ...]
    names: Mapping[str, Expr]

    @property
    def inputs(self) -> tuple[Expr, ...]:
        """The values that covered expressions use and that are not covered, in order of first use.

        Constants, operators and arguments that are left out are no inputs.
        """
        inside = set(self.covered)
        used = dict.fromkeys(child for expr in self.covered for child in children(expr))
        return tuple(
            item for item in used if item not in inside and (isinstance(item, Var) or not is_atom(item))
        )

    def is_exclusive(self, users: Users) -> bool:
        """Whether nothing outside uses a covered expression, but for the root: it can be replaced as a whole.

        Then no input depends on a covered expression either.
        """
        inside = set(self.covered)
        return all(expr is self.root or users.all_in(expr, inside) for expr in self.covered)


def match(pattern: ExprPattern, expr: Expr, users: Users | None = None) -> Match | None:
    """How a pattern fits an expression, in the first way there is; None if it does not.

    That covered expressions are used elsewhere does not matter here: see `Match.is_exclusive`.

    Args:
        pattern: Pattern to look for.
        expr: The expression that the whole pattern is to stand for.
        users: Users in the program, for `dominates`; without them, only those below `expr` are known.
    """
    matched = next(_Matcher(users, expr).ways(pattern, expr, _NOTHING), None)
    if matched is None:
        return None
    return Match(expr, matched.covered, MappingProxyType(dict(matched.names)))


def find_matches(pattern: ExprPattern, root: Expr, users: Users | None = None) -> tuple[Match, ...]:
    """The match of every expression below `root` that has one, in evaluation order; they may overlap.

    Function literals are searched too. Linear in the program for patterns without `dominates`.

    Args:
        pattern: Pattern to look for.
        root: A function, or any expression.
        users: Users below `root`, if they are known already.
    """
    users = Users.below(root) if users is None else users
    found = (match(pattern, expr, users) for expr in post_order(root))
    return tuple(item for item in found if item is not None)


@dataclass(frozen=True, slots=True)
class Matched:
    """What has been matched so far."""

    covered: tuple[Expr, ...] = ()
    names: tuple[tuple[str, Expr], ...] = ()

    def covering(self, *exprs: Expr) -> Matched:
        """The same and some covered expressions."""
        new = tuple(expr for expr in exprs if expr not in self.covered)
        return replace(self, covered=self.covered + new) if new else self

    def naming(self, name: str, expr: Expr) -> Matched | None:
        """The same and a name; None if the name stands for another expression."""
        known = dict(self.names)
        if name in known:
            return self if _is_same(known[name], expr) else None
        return replace(self, names=(*self.names, (name, expr)))


_NOTHING = Matched()


@dataclass(slots=True)
class _Matcher:
    """Matches in one program.

    Attributes:
        users: Users in the program; computed at first use if not given.
        root: Below which users are looked for then.
    """

    users: Users | None
    root: Expr

    def ways(self, pattern: ExprPattern, expr: Expr, matched: Matched) -> Iterator[Matched]:
        """Every way in which a pattern fits an expression, given what has been matched already."""
        match pattern:
            case Wildcard() | Absent() | IsConstant() | IsVar() | IsOp():
                yield from (matched,) if _is_leaf(pattern, expr) else ()
            case IsCall():
                yield from self._call(pattern, expr, matched)
            case IsTuple() | IsTupleGet():
                yield from self._tuple(pattern, expr, matched)
            case Either(options=options):
                yield from chain.from_iterable(self.ways(option, expr, matched) for option in options)
            case Constrained(inner=inner, constraint=constraint):
                yield from self.ways(inner, expr, matched) if holds(constraint, expr) else ()
            case Named(inner=inner, name=name):
                ways = (way.naming(name, expr) for way in self.ways(inner, expr, matched))
                yield from (way for way in ways if way is not None)
            case Dominates():
                yield from self._dominated(pattern, expr, matched)
            case _:
                assert_never(pattern)

    def _call(self, pattern: IsCall, expr: Expr, matched: Matched) -> Iterator[Matched]:
        if not isinstance(expr, Call):
            return
        given = _without_absent_tail(expr.args)
        missing = len(pattern.args) - len(given)
        if missing < 0 and not pattern.more:
            return
        args = given[: len(pattern.args)] + (_LEFT_OUT,) * missing
        yield from self._parts((pattern.callee, *pattern.args), (expr.op, *args), expr, matched)

    def _tuple(self, pattern: IsTuple | IsTupleGet, expr: Expr, matched: Matched) -> Iterator[Matched]:
        match pattern, expr:
            case IsTuple(fields=patterns), Tuple(fields=fields) if len(patterns) == len(fields):
                yield from self._parts(patterns, fields, expr, matched)
            case IsTupleGet(tuple_value=whole, index=index), TupleGetItem() if index in (None, expr.index):
                yield from self._parts((whole,), (expr.tuple_value,), expr, matched)
            case _:
                return

    def _parts(
        self, patterns: tuple[ExprPattern, ...], exprs: tuple[Expr, ...], whole: Expr, matched: Matched
    ) -> Iterator[Matched]:
        """Every way to match some patterns with as many expressions, which make up the whole."""
        if not patterns:
            yield matched.covering(whole)
            return
        for way in self.ways(patterns[0], exprs[0], matched):
            yield from self._parts(patterns[1:], exprs[1:], whole, way)

    def _dominated(self, pattern: Dominates, expr: Expr, matched: Matched) -> Iterator[Matched]:
        if self.users is None:
            self.users = Users.below(self.root)

        def is_parent(inner: Expr) -> bool:
            return next(self.ways(pattern.parent, inner, matched), None) is not None

        def path_at(inner: Expr) -> tuple[Expr, ...]:
            return next(self.ways(pattern.path, inner, _NOTHING), _NOTHING).covered

        for way in self.ways(pattern.child, expr, _NOTHING):
            for parent, path in between(way.covered, self.users, is_parent, path_at, pattern.at_most):
                for before in self.ways(pattern.parent, parent, matched):
                    yield from self.ways(pattern.child, expr, before.covering(*path))


def _is_leaf(pattern: Wildcard | Absent | IsConstant | IsVar | IsOp, expr: Expr) -> bool:
    """Whether a pattern without parts fits an expression."""
    match pattern:
        case Wildcard():
            return not _is_absent(expr)
        case Absent():
            return _is_absent(expr)
        case IsConstant():
            return isinstance(expr, Constant)
        case IsVar(name=name):
            return isinstance(expr, Var) and name in (None, expr.name)
        case IsOp(names=names, domain=domain):
            return isinstance(expr, Op) and expr.name in names and expr.domain == domain
        case _:
            assert_never(pattern)


def _is_absent(expr: Expr) -> bool:
    return isinstance(expr, Tuple) and not expr.fields


def _is_same(left: Expr, right: Expr) -> bool:
    """Expressions are compared by identity, operators by name and domain."""
    if isinstance(left, Op) and isinstance(right, Op):
        return (left.name, left.domain) == (right.name, right.domain)
    return left is right


def _without_absent_tail(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    count = len(args)
    while count and _is_absent(args[count - 1]):
        count -= 1
    return args[:count]
