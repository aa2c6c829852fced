"""Bodies of Loop and Scan become global functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from intarsia.ir import (
    Call,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    Op,
    Var,
    children,
    substitute,
    with_children,
    with_fields,
    with_module_fields,
)
from intarsia.ir.scope import place
from intarsia.passes.functions.captured import Captures
from intarsia.passes.functions.sealed import is_sealed
from intarsia.support.free_names import numbered_names
from intarsia.support.post_order import post_order_of
from intarsia.transform import ModulePass, PassContext, register_pass

_REPEATED: Final = ("Loop", "Scan")


@register_pass
@dataclass(frozen=True)
class OutlineBodies(ModulePass, opt_level=0, required=("InferType",)):
    """Makes a global function of the body of each Loop and Scan; what it uses from around are parameters.

    The body that is left only calls that function. Passes that treat a body as a part of its operator then
    see the operators of the body: PartitionGraph divides them between toolchains, and `build` repeats the
    function step by step. Bodies inside of bodies, too. Linear, times the depth of bodies inside of bodies.

    Before:
        def @main(%x: Tensor[(4, 2), float32], %y: Tensor[(2,), float32]) {
          %step = fn (%s: Tensor[(2,), float32], %row: Tensor[(2,), float32]) {
            %sum = Add(Add(%s, %row), %y);
            (%sum, %sum)
          };
          Scan(%y, %x, %step, num_scan_inputs=1, outputs=2)
        }
    After:
        def @main(%x: Tensor[(4, 2), float32], %y: Tensor[(2,), float32]) {
          %step = fn (%s: Tensor[(2,), float32], %row: Tensor[(2,), float32]) {
            @main_body_0(%s, %row, %y)
          };
          Scan(%y, %x, %step, num_scan_inputs=1, outputs=2)
        }
        def @main_body_0(%s: Tensor[(2,), float32], %row: Tensor[(2,), float32],
                         %captured0: Tensor[(2,), float32]) {
          %sum = Add(Add(%s, %row), %captured0);
          (%sum, %sum)
        }
    """

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with the bodies as global functions."""
        taken = {var.name for var in mod.functions}
        functions = dict(mod.functions)
        waiting = [var for var, function in mod.functions.items() if isinstance(function, Function)]
        while waiting:
            var = waiting.pop()
            function = functions[var]
            assert isinstance(function, Function)
            if is_sealed(function):
                continue
            outlining = _Outlining(function, var.name, taken)
            functions[var] = outlining.rest()
            functions.update(outlining.outlined)
            waiting += outlining.outlined
        return with_module_fields(mod, functions=functions)


class _Outlining:
    """Takes the outermost bodies out of one function.

    Args:
        function: The function.
        owner: Its name.
        taken: Names of global functions; those of the new ones are added.

    Attributes:
        outlined: The new functions.
    """

    def __init__(self, function: Function, owner: str, taken: set[str]) -> None:
        self.outlined: dict[GlobalVar, Function] = {}
        self._function, self._taken = function, taken
        self._names = numbered_names(f"{owner}_body_", taken)

    def rest(self) -> Function:
        """The function with bodies that only call."""
        captures = Captures.of(place(self._function))
        used = {body: _without_literals(body, captures) for body in _outermost(self._function)}
        used = {body: exprs for body, exprs in used.items() if all(map(_is_value, exprs))}
        symbols = {body: self._outline(body, exprs) for body, exprs in used.items()}
        done: dict[Expr, Expr] = {}

        def below(expr: Expr) -> tuple[Expr, ...]:
            return used[expr] if isinstance(expr, Function) and expr in used else children(expr)

        root: Expr = self._function
        for expr in post_order_of((root,), below):
            ready = tuple(done[child] for child in below(expr))
            if isinstance(expr, Function) and expr in used:
                done[expr] = _calling(expr, symbols[expr], ready)
            else:
                done[expr] = with_children(expr, ready)
        after = done[self._function]
        assert isinstance(after, Function)
        return after

    def _outline(self, body: Function, used: tuple[Expr, ...]) -> GlobalVar:
        """Make a global function of a body; what it uses from around are its last parameters."""
        params: dict[Expr, Var] = {param: _variable(param.name, param) for param in body.params}
        params |= {expr: _variable(f"captured{number}", expr) for number, expr in enumerate(used)}
        outlined = Function(tuple(params.values()), substitute(body.body, dict(params)), span=body.span)
        types = tuple(param.checked_type for param in params.values())
        name = next(self._names)
        self._taken.add(name)
        symbol = GlobalVar(name, checked_type=FuncType(types, body.result_type))
        self.outlined[symbol] = outlined
        return symbol


def _outermost(root: Function) -> Iterator[Function]:
    """The bodies of Loop and Scan in a function that are in no other one and do more than to call."""
    seen: set[Expr] = {root}
    stack: list[Expr] = [root.body]
    while stack:
        expr = stack.pop()
        if expr in seen or is_sealed(expr):
            continue
        seen.add(expr)
        below = list(children(expr))
        body = below[-1] if below else None
        if isinstance(expr, Call) and isinstance(expr.op, Op) and isinstance(body, Function):
            below.pop()
            if not expr.op.domain and expr.op.name in _REPEATED and body not in seen:
                seen.add(body)
                if not (isinstance(body.body, Call) and isinstance(body.body.op, GlobalVar)):
                    yield body
        stack.extend(reversed(below))


def _without_literals(body: Function, captures: Captures) -> tuple[Expr, ...]:
    """Return what a body uses from around; in place of a body that stands there, what that one uses."""
    used: dict[Expr, None] = {}
    stack = [*reversed(captures.used[body])]
    while stack:
        expr = stack.pop()
        if isinstance(expr, Function):
            stack.extend(reversed(captures.used[expr]))
        else:
            used[expr] = None
    return tuple(used)


def _is_value(expr: Expr) -> bool:
    """Whether a captured expression can be passed as an argument."""
    return expr.checked_type is not None and not isinstance(expr.checked_type, FuncType)


def _variable(name: str, like: Expr) -> Var:
    return Var(name, checked_type=like.checked_type, virtual_device=like.virtual_device, span=like.span)


def _calling(body: Function, symbol: GlobalVar, captured: tuple[Expr, ...]) -> Function:
    """Return a function like a body that only calls the global function made of it."""
    params = tuple(_variable(param.name, param) for param in body.params)
    call = Call(symbol, (*params, *captured), checked_type=body.result_type, span=body.span)
    return with_fields(body, params=params, body=call)
