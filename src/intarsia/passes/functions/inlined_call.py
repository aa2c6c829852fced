"""The value of a call of a known function, written in place of the call."""

from __future__ import annotations

from dataclasses import replace

from intarsia.ir import (
    Call,
    Expr,
    Function,
    Let,
    TensorType,
    Var,
    children,
    post_order,
    with_children,
    with_fields,
)
from intarsia.ir.scope import binders, is_atom, place
from intarsia.op.infer import typed
from intarsia.passes.functions.evaluation_region import evaluation_regions, operator_bodies
from intarsia.target import UNCONSTRAINED


class InlinableFunction:
    """A function whose calls can be replaced by its body.

    An argument is evaluated once, as it was: it stands where the parameter stood if the body uses that
    directly, else (in a branch or a function only) it is bound by a let, as it is where the parameter has
    another device or says more of the type.

    Args:
        function: The function.
        is_copied: Whether the body is copied, variables included, because there are other calls of it.
    """

    def __init__(self, function: Function, *, is_copied: bool) -> None:
        self._function = function
        self._is_copied = is_copied
        self._order = tuple(post_order(function.body))
        self._bound = {var for expr in self._order for var in binders(expr)}
        self._used = _used_directly(function, self._order)

    def applied(self, call: Call) -> Expr:
        """What the call computes; the call itself if the number of arguments is wrong."""
        params = self._function.params
        if len(params) != len(call.args):
            return call
        done: dict[Expr, Expr] = {}
        lets: list[tuple[Var, Expr]] = []
        for param, arg in zip(params, call.args, strict=True):
            if _agrees(param, arg) and (is_atom(arg) or self._used.get(param, True)):
                done[param] = arg
            else:
                done[param] = fresh = _fresh(param, call)
                lets.append((fresh, arg))
        body = self._as_wanted(self._body(call, done), call)
        for var, arg in reversed(lets):
            body = Let(var, arg, body, span=call.span, virtual_device=body.virtual_device)
        return body

    def _body(self, call: Call, done: dict[Expr, Expr]) -> Expr:
        for expr in self._order:
            if expr in done:
                continue
            if is_atom(expr):
                is_renamed = self._is_copied and isinstance(expr, Var) and expr in self._bound
                done[expr] = replace(expr) if is_renamed else expr
                continue
            new = with_children(expr, tuple(done[child] for child in children(expr)))
            if new is expr and not self._is_copied:
                done[expr] = expr
                continue
            copied = replace(new) if new is expr else new
            done[expr] = typed(with_fields(copied, span=copied.span or call.span))
        return done[self._function.body]

    def _as_wanted(self, result: Expr, call: Call) -> Expr:
        """The result on the device of the call, or else of the function, and typed if the call is."""
        device = call.virtual_device
        if device == UNCONSTRAINED:
            device = self._function.virtual_device
        is_moved = device not in (UNCONSTRAINED, result.virtual_device)
        if not is_moved and (result.checked_type is not None or call.checked_type is None):
            return result
        type_ = result.checked_type or call.checked_type
        var = Var("result", checked_type=type_, virtual_device=device, span=call.span)
        return Let(var, result, var, span=call.span, virtual_device=device)


def _fresh(var: Var, call: Call) -> Var:
    """Another variable with the same facts; without a span, it has the call's."""
    return replace(var, span=var.span or call.span)


def _agrees(param: Var, arg: Expr) -> bool:
    """Whether nothing that the parameter says is lost when the argument takes its place."""
    if param.virtual_device not in (UNCONSTRAINED, arg.virtual_device):
        return False
    own, given = param.checked_type, arg.checked_type
    return own is None or own == given or (isinstance(given, TensorType) and given.is_static)


def _used_directly(function: Function, order: tuple[Expr, ...]) -> dict[Expr, bool]:
    """For each used parameter, whether the body evaluates some use of it itself, once and in any case."""
    placed = place(function)
    region = evaluation_regions(placed, operator_bodies(order))
    body_scope = placed.inner[function, len(function.params)]
    params = set(function.params)
    used_directly: dict[Expr, bool] = {function.body: True} if function.body in params else {}
    for scope, members in placed.members.items():
        for expr in members:
            if expr is function:
                continue
            for position, child in enumerate(children(expr)):
                if child in params:
                    used_in = region[placed.inner.get((expr, position), scope)]
                    used_directly[child] = used_directly.get(child, False) or used_in is region[body_scope]
    return used_directly
