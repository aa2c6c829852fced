"""Programs as graphs: names go, sharing stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from intarsia.ir import (
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Var,
    children,
    post_order,
    with_children,
)
from intarsia.ir.scope import Scope, ScopedProgram, is_atom, place
from intarsia.op.infer import typed
from intarsia.op.purity import impure_calls
from intarsia.passes.functions.evaluation_region import operator_bodies
from intarsia.passes.functions.sealed import is_sealed, sealed_scopes
from intarsia.target import UNCONSTRAINED
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class ToGraphNormalForm(FunctionPass, opt_level=1, required=("InferType",)):
    """Removes lets: what a let names is used directly, shared, and evaluated where its uses are.

    A let evaluates its value first, once; a shared expression is evaluated once in the innermost scope
    around its uses (`ir.scope`). A let goes where that is the same, where the name is not used, and where
    it only means that a value is evaluated in one branch instead of ahead of the If, unless it draws random
    numbers. It stays where all uses are inside a function, which may be called often; where the value is a
    function that calls itself; and where name and value disagree in device or type. Functions that are
    fused, matched for a toolchain or given to one are left as they are.

    The inverse of ToANormalForm: of a program without lets it restores the structure. Linear, times the
    depth of nesting of scopes between uses.

    Before:
        def @main(%x: Tensor[(2,), float32]) {
          let %a: Tensor[(2,), float32] = Relu(%x);
          let %b: Tensor[(2,), float32] = Neg(%a);
          Add(%a, %b)
        }
    After:
        def @main(%x: Tensor[(2,), float32]) { %0 = Relu(%x); Add(%0, Neg(%0)) }
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function without the lets that can go; the same object if there is none."""
        if is_sealed(function):
            return function
        order = tuple(post_order(function))
        if not any(isinstance(expr, Let) for expr in order):
            return function
        kept = _KeptLets(function, order, mod)
        kept.decide()
        return _without_lets(function, order, kept.removed)


def _without_lets(function: Function, order: tuple[Expr, ...], removed: set[Let]) -> Function:
    """The function with the names of some lets replaced by what they stand for."""
    names: dict[Expr, list[Var]] = {}
    for let in removed:
        names.setdefault(let.value, []).append(let.var)
    replaced = {var for some in names.values() for var in some}
    done: dict[Expr, Expr] = {}
    for expr in order:
        if expr in replaced:
            continue  # it has its value when that has been seen
        if expr in removed and isinstance(expr, Let):
            new = done[expr.body]
        else:
            new = with_children(expr, tuple(done.get(child, child) for child in children(expr)))
            new = expr if new is expr else typed(new)
        waiting = [expr]
        while waiting:
            known = waiting.pop()
            done[known] = new
            waiting.extend(names.get(known, ()))
    after = done[function]
    assert isinstance(after, Function)
    return after


class _KeptLets:
    """Decides which lets stay, from the results of a function to its inputs.

    So all uses of a value are known, where they will be, when it is its turn.

    Args:
        function: The function.
        order: All its expressions, each after its children.
        mod: The functions that it calls.

    Attributes:
        removed: The lets that can go.
    """

    def __init__(self, function: Function, order: tuple[Expr, ...], mod: IRModule) -> None:
        self.removed: set[Let] = set()
        self._order = order
        self._impure = _tainted(order, impure_calls(function, mod))
        self._bodies = operator_bodies(order)
        self._placed = place(function)
        self._sealed = _sealed_expressions(self._placed)
        self._lets: dict[Expr, list[Let]] = {}
        self._alias: dict[Expr, Expr] = {}
        self._named: set[Expr] = set()
        for let in self._candidates():
            self._named.add(let)
            if is_atom(let.value):
                self._alias[let.var] = let.value
                self.removed.add(let)
            else:
                self._lets.setdefault(let.value, []).append(let)
        self._region: dict[Expr, Scope] = {function: Scope(function, None, 0)}
        self._names: dict[Expr, Scope] = {}

    def decide(self) -> None:
        """Go through all expressions, users first."""
        for expr in reversed(self._order):
            if is_atom(expr):
                continue
            self._decide_lets_of(expr)
            own = self._region.get(expr)
            if own is not None:
                for child, scope in self._uses(expr, own):
                    self._use(child, scope)

    def _candidates(self) -> Iterator[Let]:
        """Lets whose names say no more than their values, the innermost first."""
        users = _first_use(self._order)
        number = {expr: index for index, expr in enumerate(self._order)}
        for let in self._order:
            if isinstance(let, Let) and let not in self._sealed and _agrees(let):
                is_recursive = users.get(let.var, len(number)) <= number[let.value]
                if not is_recursive:
                    yield let

    def _decide_lets_of(self, value: Expr) -> None:
        """Which lets of a value can go, now that all uses of their names are known."""
        lets = self._lets.get(value, ())
        for let in [let for let in lets if not self._removes(let)]:
            if not self._removes(let):  # what the others have left behind may be where it is needed
                self._use(value, self._region[let])

    def _removes(self, let: Let) -> bool:
        """Whether a let can go: its value is evaluated where its name and all others need it."""
        at, used_in = self._region.get(let), self._names.get(let.var)
        if at is not None and used_in is not None:  # else neither the let nor its name has a use
            direct = self._region.get(let.value)
            needed = used_in if direct is None else used_in.common(direct)
            if needed.common(at) is not needed and not self._may_move(let.value, at, needed):
                return False
            self._use(let.value, used_in)
        self.removed.add(let)
        return True

    def _may_move(self, value: Expr, before: Scope, after: Scope) -> bool:
        """Whether a value may be evaluated in a scope inside of the one where it is evaluated now."""
        scope = after
        while scope is not before:
            if value in self._impure or isinstance(scope.root, Function) or scope.parent is None:
                return False
            scope = scope.parent
        return True

    def _uses(self, expr: Expr, scope: Scope) -> Iterator[tuple[Expr, Scope]]:
        """What an expression uses, each with the region where."""
        match expr:
            case Let():
                if expr not in self._named:
                    yield expr.value, scope
                yield expr.body, scope
            case Function() if expr not in self._bodies:
                yield expr.body, Scope(expr, scope, scope.depth + 1)
            case Function():
                yield expr.body, scope
            case If():
                yield expr.cond, scope
                yield expr.true_branch, Scope(expr.true_branch, scope, scope.depth + 1)
                yield expr.false_branch, Scope(expr.false_branch, scope, scope.depth + 1)
            case _:
                yield from ((child, scope) for child in children(expr))

    def _use(self, expr: Expr, scope: Scope) -> None:
        """Note that an expression is used in a region; regions are joined at the innermost around both."""
        expr = self._unaliased(expr)
        uses = self._names if isinstance(expr, Var) else self._region
        seen = uses.get(expr)
        uses[expr] = scope if seen is None else seen.common(scope)

    def _unaliased(self, expr: Expr) -> Expr:
        """What a name of a name is a name of; the way there is remembered."""
        passed = []
        while expr in self._alias:
            passed.append(expr)
            expr = self._alias[expr]
        self._alias.update(dict.fromkeys(passed, expr))
        return expr


def _agrees(let: Let) -> bool:
    """Whether nothing is lost that a let says of its value and body."""
    var, value, body = let.var, let.value, let.body
    return (
        var.virtual_device in (UNCONSTRAINED, value.virtual_device)
        and let.virtual_device in (UNCONSTRAINED, body.virtual_device)
        and var.checked_type in (None, value.checked_type)
    )


def _tainted(order: tuple[Expr, ...], impure: set[Expr]) -> set[Expr]:
    """Expressions that are impure or use such."""
    tainted: set[Expr] = set()
    for expr in order:
        if expr in impure or any(child in tainted for child in children(expr)):
            tainted.add(expr)
    return tainted


def _first_use(order: tuple[Expr, ...]) -> dict[Expr, int]:
    """The number of the first expression that uses a variable; binders are no uses."""
    first_use: dict[Expr, int] = {}
    for index, expr in enumerate(order):
        below = children(expr)
        used = below[1:] if isinstance(expr, Let) else below[-1:] if isinstance(expr, Function) else below
        for child in used:
            if isinstance(child, Var):
                first_use.setdefault(child, index)
    return first_use


def _sealed_expressions(placed: ScopedProgram) -> frozenset[Expr]:
    """What is inside of sealed functions."""
    sealed = sealed_scopes(placed)
    return frozenset(expr for scope, members in placed.members.items() if sealed[scope] for expr in members)
