"""Function literals that are only called, so that they can be taken out of where they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from intarsia.ir import Call, Expr, Function, FuncType, Let, Var, children, post_order
from intarsia.ir.scope import Scope, ScopedProgram, place
from intarsia.passes.functions.captured import Captures
from intarsia.passes.functions.sealed import sealed_scopes

_STAYS = ("Primitive", "Composite")


@dataclass(frozen=True, slots=True)
class LiftableFunctions:
    """The liftable literals of one global function.

    Attributes:
        names: Each with the name that its let gives it, or "function".
        captured: Outer values that each needs, for itself and for the liftable functions that it calls.
    """

    names: Mapping[Function, str]
    captured: Mapping[Function, tuple[Expr, ...]]
    _named: Mapping[Var, Function]

    @classmethod
    def of(cls, root: Function) -> LiftableFunctions:
        """The liftable literals in a global function."""
        placed = place(root)
        named = {
            expr.var: expr.value
            for expr in post_order(root)
            if isinstance(expr, Let) and isinstance(expr.value, Function)
        }
        candidates = _only_called(root, placed, named)
        if not candidates:
            return cls({}, {}, {})
        captures = Captures.of(placed)
        liftable = _without_function_captures(candidates, captures, named)
        given = {literal: var.name for var, literal in named.items()}
        names = {literal: given.get(literal, "function") for literal in liftable}
        of_liftable = {var: literal for var, literal in named.items() if literal in names}
        partial = cls(names, {}, of_liftable)
        return cls(names, _all_captured(partial, captures, placed), of_liftable)

    def callee(self, expr: Expr) -> Function | None:
        """The liftable function that an expression calls, if it does."""
        if not isinstance(expr, Call):
            return None
        literal = self._named.get(expr.op) if isinstance(expr.op, Var) else expr.op
        return literal if isinstance(literal, Function) and literal in self.names else None

    def resolved(self, used: Expr) -> Function | None:
        """The liftable function that something is, or is the name of."""
        literal = self._named.get(used) if isinstance(used, Var) else used
        return literal if isinstance(literal, Function) and literal in self.names else None


def _only_called(
    root: Function, placed: ScopedProgram, named: Mapping[Var, Function]
) -> dict[Function, None]:
    """Literals with no use but calls, and at most one name; in order of appearance."""
    sealed = sealed_scopes(placed)
    inside = {expr for scope, members in placed.members.items() if sealed[scope] for expr in members}
    names = Counter(named.values())
    stored: set[Expr] = {literal for literal, count in names.items() if count > 1}
    for expr in post_order(root):
        for used in _values_used(expr):
            stored.add(used)
            if isinstance(used, Var) and used in named:
                stored.add(named[used])
    return {
        expr: None
        for expr in post_order(root.body)
        if isinstance(expr, Function)
        and expr not in stored
        and expr not in inside
        and not any(name in expr.attrs for name in _STAYS)
    }


def _values_used(expr: Expr) -> tuple[Expr, ...]:
    """What an expression uses otherwise than by calling, naming or binding it."""
    match expr:
        case Call():
            return expr.args
        case Let():
            return (expr.body,) if isinstance(expr.value, Function) else (expr.value, expr.body)
        case Function():
            return (expr.body,)
        case _:
            return children(expr)


def _without_function_captures(
    candidates: dict[Function, None], captures: Captures, named: Mapping[Var, Function]
) -> dict[Function, None]:
    """Those that capture no function but candidates."""
    users: dict[Function, list[Function]] = {}
    refused: list[Function] = []
    for literal in candidates:
        for used in captures.used[literal]:
            function = named.get(used) if isinstance(used, Var) else used
            if isinstance(function, Function) and function in candidates:
                users.setdefault(function, []).append(literal)
            elif isinstance(used.checked_type, FuncType):
                refused.append(literal)
    left = dict(candidates)
    while refused:
        literal = refused.pop()
        if literal in left:
            del left[literal]
            refused.extend(users.get(literal, ()))
    return left


def _all_captured(
    liftable: LiftableFunctions, captures: Captures, placed: ScopedProgram
) -> dict[Function, tuple[Expr, ...]]:
    """What each needs, with what those need that are called in it, as far as that is outside of it."""
    needed = {
        literal: {used: None for used in captures.used[literal] if liftable.resolved(used) is None}
        for literal in liftable.names
    }
    callers: dict[Function, dict[Function, None]] = {literal: {} for literal in liftable.names}
    for scope, callee in _calls(liftable, placed):
        for function in captures.functions_around(scope):
            if function in needed:
                callers[callee][function] = None
    waiting = list(liftable.names)
    while waiting:
        callee = waiting.pop()
        for caller in callers[callee]:
            new = [
                used
                for used in needed[callee]
                if used not in needed[caller] and not captures.is_inside(used, caller)
            ]
            if new:
                needed[caller].update(dict.fromkeys(new))
                waiting.append(caller)
    return {literal: tuple(used) for literal, used in needed.items()}


def _calls(liftable: LiftableFunctions, placed: ScopedProgram) -> Iterator[tuple[Scope, Function]]:
    for scope, members in placed.members.items():
        for expr in members:
            callee = liftable.callee(expr)
            if callee is not None:
                yield scope, callee
