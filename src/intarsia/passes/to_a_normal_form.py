"""Programs in which every step has a name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from intarsia.ir import (
    Call,
    Expr,
    Function,
    IRModule,
    Let,
    Type,
    Var,
    children,
    post_order,
    with_children,
)
from intarsia.ir.scope import Scope, is_atom, place
from intarsia.passes.functions.evaluation_region import evaluation_regions, operator_bodies
from intarsia.passes.functions.sealed import is_sealed, sealed_scopes
from intarsia.target import UNCONSTRAINED, VirtualDevice
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class ToANormalForm(FunctionPass, opt_level=1, required=("InferType",)):
    """Binds every compound expression by a let, in the order of evaluation; arguments are atoms.

    An expression is bound in the scope where it is evaluated (`ir.scope.place`), once, however often it is
    used; lets inside of lets become one chain per function body and branch. In place stay the bodies of Loop,
    Scan and SequenceMap, and callees that are fused, matched for a toolchain or given to one, the inside of
    which is left as it is. A let that only renames an atom goes, unless the name has another device or type.
    Source: A. Sabry and M. Felleisen, "Reasoning about programs in continuation-passing style" (1992).
    `ToGraphNormalForm` is the inverse. Linear in the program.

    Before:
        def @main(%x: Tensor[(2,), float32]) { %0 = Relu(%x); Add(%0, Neg(%0)) }
    After:
        def @main(%x: Tensor[(2,), float32]) {
          let %a: Tensor[(2,), float32] = Relu(%x);
          let %b: Tensor[(2,), float32] = Neg(%a);
          let %c: Tensor[(2,), float32] = Add(%a, %b);
          %c
        }
    """

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function in A-normal form; the same object if it is."""
        if is_sealed(function):
            return function
        return _Naming(function).after()


class _Naming:
    """Gives names to the expressions of one global function.

    Args:
        function: The function.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._order = tuple(post_order(function))
        self._placed = place(function)
        self._home = {expr: scope for scope, members in self._placed.members.items() for expr in members}
        self._region = evaluation_regions(self._placed)
        self._sealed = sealed_scopes(self._placed)
        self._uses = Counter(child for expr in self._order for child in children(expr))
        self._lets: dict[Expr, list[Let]] = {}
        for expr in self._order:
            if isinstance(expr, Let) and not self._sealed[self._home[expr]]:
                self._lets.setdefault(expr.value, []).append(expr)
        self._in_place = operator_bodies(self._order).union(
            expr.op for expr in self._order if isinstance(expr, Call) and is_sealed(expr.op)
        )
        self._bindings: dict[Scope, list[tuple[Var, Expr]]] = {}
        self._atom: dict[Expr, Expr] = {}
        self._is_changed = False
        self._names = 0

    def after(self) -> Function:
        """The function with everything named."""
        let_bound = {let.var for lets in self._lets.values() for let in lets}
        for expr in self._order:
            if expr is self._function:
                break
            if expr in let_bound:
                continue  # it has its value when that has been seen
            if is_atom(expr):
                self._provide(expr, expr)
            elif self._sealed[self._home[expr]]:
                self._atom[expr] = self._rebuilt(expr)
            elif isinstance(expr, Let):
                self._finish_let(expr)
            else:
                self._bind(expr)
        after = self._rebuilt(self._function)
        assert isinstance(after, Function)
        return after if self._is_changed else self._function

    def _bind(self, expr: Expr) -> None:
        """Name a compound expression where it is evaluated."""
        value = self._rebuilt(expr)
        if expr in self._in_place:
            self._atom[expr] = value
            if expr not in self._lets:
                return
        var = self._own_name(expr)
        self._bind_in(self._region[self._home[expr]], var, value)
        self._provide(expr, var)

    def _own_name(self, expr: Expr) -> Var:
        """The variable of the let that binds an expression, or a fresh one."""
        region = self._region[self._home[expr]]
        for let in self._lets.get(expr, ()):
            is_only = self._uses[expr] == 1
            if is_only or _agrees(let.var, expr, exactly=True):
                self._is_changed |= not is_only or self._region[self._home[let]] is not region
                return let.var
        return self._fresh(expr, expr.checked_type, expr.virtual_device)

    def _provide(self, expr: Expr, atom: Expr) -> None:
        """From here on an atom stands for an expression, and so for what lets call it."""
        waiting = [(expr, atom)]
        while waiting:
            bound, value = waiting.pop()
            if bound not in self._in_place:
                self._atom[bound] = value
            for let in self._lets.get(bound, ()):
                if let.var is value:
                    self._atom[let.var] = value
                    waiting.append((let.var, value))
                elif _agrees(let.var, value):
                    self._is_changed = True
                    waiting.append((let.var, value))
                else:
                    self._bind_in(self._region[self._home[let]], let.var, value)
                    self._is_changed |= not is_atom(bound)
                    waiting.append((let.var, let.var))

    def _finish_let(self, let: Let) -> None:
        """What stands for a let is what stands for its body, on the device that the let has."""
        self._check_root(let, 2)
        atom = self._atom[let.body]
        if let.virtual_device not in (UNCONSTRAINED, atom.virtual_device):
            renamed = self._fresh(let, let.checked_type, let.virtual_device)
            self._bind_in(self._region[self._home[let]], renamed, atom)
            atom = renamed
        self._provide(let, atom)

    def _rebuilt(self, expr: Expr) -> Expr:
        """An expression over atoms; what opens scopes gets chains of lets there."""
        new = []
        for position, child in enumerate(children(expr)):
            scope = self._placed.inner.get((expr, position))
            if scope is None or self._sealed[scope]:
                new.append(self._atom.get(child, child))
            else:
                self._check_root(expr, position)
                new.append(self._chain(scope))
        return with_children(expr, tuple(new))

    def _check_root(self, opener: Expr, position: int) -> None:
        """Note whether the result of a scope is evaluated around it."""
        scope, root = self._placed.inner[opener, position], children(opener)[position]
        if root in self._home and self._region[self._home[root]] is not self._region[scope]:
            self._is_changed = True

    def _chain(self, scope: Scope) -> Expr:
        """The bindings of a region around its result."""
        body = self._atom[scope.root]
        device = body.virtual_device
        for var, value in reversed(self._bindings.get(scope, ())):
            body = Let(var, value, body, span=value.span or var.span, virtual_device=device)
        return body

    def _bind_in(self, region: Scope, var: Var, value: Expr) -> None:
        self._bindings.setdefault(region, []).append((var, value))

    def _fresh(self, expr: Expr, type_: Type | None, device: VirtualDevice) -> Var:
        self._is_changed = True
        self._names += 1
        return Var(f"v{self._names}", checked_type=type_, virtual_device=device, span=expr.span)


def _agrees(var: Var, value: Expr, *, exactly: bool = False) -> bool:
    """Whether a name says nothing that its value does not, and with `exactly` the same."""
    device, type_ = var.virtual_device, var.checked_type
    if exactly:
        return device == value.virtual_device and type_ == value.checked_type
    return device in (UNCONSTRAINED, value.virtual_device) and type_ in (None, value.checked_type)
