"""Function literals become global functions."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import (
    Call,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    Let,
    Var,
    children,
    with_children,
    with_fields,
    with_module_fields,
)
from intarsia.passes.functions.liftable import LiftableFunctions
from intarsia.support.free_names import NameSupply
from intarsia.support.post_order import post_order_of
from intarsia.transform import ModulePass, PassContext, register_pass
from intarsia.transform.function_pass import is_skipped


@register_pass
@dataclass(frozen=True)
class LambdaLift(ModulePass, opt_level=1, required=("InferType",)):
    """Makes global functions of function literals; what they capture becomes parameters, the first ones.

    Lifted are literals that are only called, also through the name of a let, in which case they may call
    themselves. Left are the bodies of Loop, Scan and SequenceMap; literals that are Primitive or Composite;
    literals that are passed, returned, stored in a tuple or named twice, because where they are called is
    not known; and literals that use such a one from outside. A captured expression is evaluated once,
    before the calls, as it was. Source: T. Johnsson, "Lambda lifting" (FPCA 1985). Linear in the program,
    times the depth of functions inside of functions.

    Before:
        def @main(%x: Tensor[(2,), float32], %y: Tensor[(2,), float32]) {
          let %f: fn (Tensor[(2,), float32]) -> Tensor[(2,), float32]
            = fn (%z: Tensor[(2,), float32]) -> Tensor[(2,), float32] { Add(%z, %y) };
          %f(%x): Tensor[(2,), float32]
        }
    After:
        def @main(%x: Tensor[(2,), float32], %y: Tensor[(2,), float32]) { @main_f(%y, %x) }
        def @main_f(%y: Tensor[(2,), float32], %z: Tensor[(2,), float32]) -> Tensor[(2,), float32] {
          Add(%z, %y)
        }
    """

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with its literals lifted."""
        functions = dict(mod.functions)
        names = NameSupply(var.name for var in functions)
        for var, function in mod.functions.items():
            if isinstance(function, Function) and not is_skipped(function):
                found = LiftableFunctions.of(function)
                if found.names:
                    lifting = _Lifting(found, var.name, names)
                    functions[var] = lifting.rest(function)
                    functions.update(lifting.lifted())
        return with_module_fields(mod, functions=functions)


class _Lifting:
    """Takes the liftable literals out of one global function.

    Args:
        liftable: The literals.
        owner: Name of the global function.
        names: Gives the new functions their names.
    """

    def __init__(self, liftable: LiftableFunctions, owner: str, names: NameSupply) -> None:
        self._found = liftable
        self._params: dict[Function, dict[Expr, Expr]] = {}
        self._symbols: dict[Function, GlobalVar] = {}
        for literal, name in liftable.names.items():
            params = {
                used: _param(used, number, literal) for number, used in enumerate(liftable.captured[literal])
            }
            types = tuple(param.checked_type for param in (*params.values(), *literal.params))
            symbol = names.fresh(str(literal.attrs.get("global_symbol") or f"{owner}_{name}"))
            self._params[literal] = dict(params)
            self._symbols[literal] = GlobalVar(symbol, checked_type=FuncType(types, literal.result_type))

    def rest(self, function: Function) -> Function:
        """The global function with calls of what was lifted."""
        after = self._rebuilt(function, {})
        assert isinstance(after, Function)
        return after

    def lifted(self) -> dict[GlobalVar, Function]:
        """The new global functions."""
        return {symbol: self._closed(literal) for literal, symbol in self._symbols.items()}

    def _closed(self, literal: Function) -> Function:
        captured = self._params[literal]
        body = self._rebuilt(literal.body, dict(captured))
        params = (*(var for var in captured.values() if isinstance(var, Var)), *literal.params)
        return with_fields(literal, params=params, body=body, checked_type=None)

    def _rebuilt(self, root: Expr, done: dict[Expr, Expr]) -> Expr:
        """An expression with the lifted functions called by name.

        Args:
            root: The expression.
            done: Replacements of captured values.
        """
        for expr in post_order_of((root,), self._used, stop=done):
            done[expr] = self._replaced(expr, done)
        return done[root]

    def _used(self, expr: Expr) -> tuple[Expr, ...]:
        """What has to be rebuilt before an expression."""
        literal = self._found.callee(expr)
        if isinstance(expr, Call) and literal is not None:
            return (*self._params[literal], *expr.args)
        return (expr.body,) if self._is_name(expr) and isinstance(expr, Let) else children(expr)

    def _replaced(self, expr: Expr, done: dict[Expr, Expr]) -> Expr:
        used = tuple(done[item] for item in self._used(expr))
        literal = self._found.callee(expr)
        if isinstance(expr, Call) and literal is not None:
            type_ = expr.checked_type or literal.result_type
            return with_fields(expr, op=self._symbols[literal], args=used, checked_type=type_)
        return used[0] if self._is_name(expr) else with_children(expr, used)

    def _is_name(self, expr: Expr) -> bool:
        """Whether an expression is a let that names a lifted function."""
        return isinstance(expr, Let) and isinstance(expr.value, Function) and expr.value in self._symbols


def _param(used: Expr, number: int, literal: Function) -> Var:
    name = used.name if isinstance(used, Var) else f"captured{number}"
    return Var(
        name,
        checked_type=used.checked_type,
        virtual_device=used.virtual_device,
        span=used.span or literal.span,
    )
