"""Which scope an expression is evaluated in: the innermost one that encloses all its uses.

Scopes are function bodies, branches of an If and bodies of a Let. One exception: an operator evaluates its
body (a function that is its argument: Loop, Scan, SequenceMap) often, so that what depends on no variable
bound in there is evaluated around the operator, once. Functions that are called, or marked, keep what only
they use.
The printer, the ONNX exporter and the build all place expressions by this one rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from intarsia.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Let, Op, Tuple, Var
from intarsia.ir.traversal import children, post_order

CLOSED: Final = ("Compiler", "Primitive")
"""Attributes of functions that are compiled on their own, so that they may capture nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """A region of the program that is evaluated as a whole.

    Attributes:
        root: Expression that gives the value of the scope (body of the function, branch, body of the let).
        parent: Enclosing scope, None for the outermost.
        depth: Number of enclosing scopes.
    """

    root: Expr
    parent: Scope | None
    depth: int

    def common(self, other: Scope) -> Scope:
        """The innermost scope that encloses both."""
        left, right = self, other
        while left is not right:
            if left.depth >= right.depth:
                assert left.parent is not None
                left = left.parent
            else:
                assert right.parent is not None
                right = right.parent
        return left


@dataclass(frozen=True, slots=True)
class ScopedProgram:
    """Every compound expression of a program, placed.

    Attributes:
        outermost: The scope of the root expression.
        members: For each scope, its compound expressions in evaluation order.
        inner: The scopes opened by an expression, by (expression, position of the child that is the root).
    """

    outermost: Scope
    members: dict[Scope, list[Expr]]
    inner: dict[tuple[Expr, int], Scope]


def scope_roots(expr: Expr) -> Iterator[int]:
    """Positions among `children(expr)` that are evaluated in a scope of their own."""
    match expr:
        case Function():
            yield len(expr.params)
        case If():
            yield from (1, 2)
        case Let():
            yield 2
        case _:
            return


def is_atom(expr: Expr) -> bool:
    """Whether an expression needs no evaluation, so that it has no place (the absent value included)."""
    return isinstance(expr, (Var, GlobalVar, Constant, Op)) or (isinstance(expr, Tuple) and not expr.fields)


def place(root: Expr) -> ScopedProgram:
    """Assign every compound expression below `root` to its scope.

    Linear in nodes and edges, times the depth of nesting between the uses of a shared expression, and times
    the number of variables that an expression in the body of an operator depends on.
    """
    order = list(post_order(root))
    outermost = Scope(root, None, 0)
    scopes: dict[Expr, Scope] = {root: outermost}
    inner: dict[tuple[Expr, int], Scope] = {}
    bodies = _OperatorBodies.of(order)
    for expr in reversed(order):
        if is_atom(expr):
            continue  # an operator that everything shares would cost a walk to the common scope at each use
        current = scopes[expr] = bodies.leave(expr, scopes[expr])
        opened = tuple(scope_roots(expr))
        for position, child in enumerate(children(expr)):
            used_in = current
            if position in opened:
                used_in = inner[expr, position] = Scope(child, current, current.depth + 1)
                bodies.enter(expr, used_in)
            if is_atom(child):
                continue
            seen = scopes.get(child)
            scopes[child] = used_in if seen is None else seen.common(used_in)
    members: dict[Scope, list[Expr]] = {outermost: [], **{scope: [] for scope in inner.values()}}
    for expr in order:
        if not is_atom(expr):
            members[scopes[expr]].append(expr)
    return ScopedProgram(outermost, members, inner)


@dataclass(slots=True)
class _OperatorBodies:
    """The functions that operators evaluate often, and what must stay in them.

    Attributes:
        functions: The bodies.
        free: For each expression, the variables it depends on among those that are bound in a body.
        around: For each scope in a body, the scope of the innermost body around it, or the same.
        homes: The scopes of the variables bound so far.
    """

    functions: set[Expr]
    free: dict[Expr, frozenset[Expr]]
    around: dict[Scope, Scope] = field(default_factory=dict)
    homes: dict[Expr, Scope] = field(default_factory=dict)

    @classmethod
    def of(cls, order: list[Expr]) -> _OperatorBodies:
        calls = [expr for expr in order if isinstance(expr, Call)]
        arguments = {arg for call in calls if isinstance(call.op, Op) for arg in call.args}
        called = {call.op for call in calls}
        functions: set[Expr] = {
            arg for arg in arguments - called if isinstance(arg, Function) and not _is_closed(arg)
        }
        if not functions:
            return cls(set(), {})
        bound = {var for expr in post_order(*functions) for var in binders(expr)}
        free: dict[Expr, frozenset[Expr]] = {}
        for expr in order:
            free[expr] = frozenset((expr,)) if expr in bound else _union(free, children(expr))
            if own := free[expr].intersection(binders(expr)):
                free[expr] -= own
        return cls(functions, free)

    def enter(self, expr: Expr, scope: Scope) -> None:
        """A scope has been opened by an expression."""
        if not self.functions:
            return
        if expr in self.functions:
            self.around[scope] = scope
        elif not isinstance(expr, Function) and scope.parent in self.around:
            self.around[scope] = self.around[scope.parent]
        if isinstance(expr, (Function, Let)):
            self.homes.update(dict.fromkeys(binders(expr), scope))

    def leave(self, expr: Expr, scope: Scope) -> Scope:
        """The scope around all bodies that an expression does not depend on."""
        body = self.around.get(scope)
        if body is None:
            return scope
        depth = max((self.homes[var].depth for var in self.free[expr] if var in self.homes), default=0)
        while body is not None and body.depth > depth:
            assert body.parent is not None
            scope = body.parent
            body = self.around.get(scope)
        return scope


def _union(free: dict[Expr, frozenset[Expr]], below: tuple[Expr, ...]) -> frozenset[Expr]:
    """All of them; the same object where one holds the others."""
    union: frozenset[Expr] = frozenset()
    for part in (free[child] for child in below):
        if not part <= union:
            union = part if union <= part else union | part
    return union


def binders(expr: Expr) -> tuple[Var, ...]:
    """The variables that an expression binds."""
    match expr:
        case Function():
            return expr.params
        case Let():
            return (expr.var,)
        case _:
            return ()


def _is_closed(function: Function) -> bool:
    """Whether a function is compiled on its own."""
    return any(name in function.attrs for name in CLOSED)
