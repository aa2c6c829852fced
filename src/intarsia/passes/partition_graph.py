"""Regions become global functions."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Var,
    children,
    free_vars,
    post_order,
    substitute,
    with_children,
    with_fields,
    with_module_fields,
)
from intarsia.passes.functions.sealed import is_sealed
from intarsia.passes.regions.dataflow import Dataflow
from intarsia.support.free_names import NameSupply
from intarsia.transform import ModulePass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class PartitionGraph(ModulePass, opt_level=0, required=("InferType",)):
    """Lifts every function literal with `Compiler` that is called in place into a global function.

    It gets the attribute `global_symbol`, its name: the one it has, else that of the function it came from,
    the toolchain's, and a number. Variables that it used from around become further parameters. Composite
    functions inside stay as they are. Literals in the body of a Loop, Scan or SequenceMap stay, too: the
    operator is compiled as a whole, unless its toolchain looks inside. Linear.

    Before:
        def @main(%x: Tensor[(2,), float32]) {
          fn (%y: Tensor[(2,), float32]) attributes {
            Compiler="onnxruntime", target="cpu -toolchain=onnxruntime"
          } { Relu(%y) }(%x)
        }
    After:
        def @main(%x: Tensor[(2,), float32]) { @main_onnxruntime_0(%x) }
        def @main_onnxruntime_0(%y: Tensor[(2,), float32]) attributes {
          Compiler="onnxruntime", global_symbol="main_onnxruntime_0", target="cpu -toolchain=onnxruntime"
        } { Relu(%y) }
    """

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with its regions as global functions."""
        lifting = _Lifting(NameSupply(var.name for var in mod.functions))
        functions = {
            var: lifting.applied(var.name, function)
            if isinstance(function, Function) and not is_sealed(function)
            else function
            for var, function in mod.functions.items()
        }
        return with_module_fields(mod, functions={**functions, **lifting.lifted})


@dataclass(frozen=True, slots=True)
class _Lifted:
    """A region as a global function, and the variables that it is called with besides its arguments."""

    callee: GlobalVar
    captured: tuple[Var, ...]


class _Lifting:
    """The functions that have been lifted out of a module.

    Args:
        names: Gives the new functions their names.
    """

    def __init__(self, names: NameSupply) -> None:
        self.lifted: dict[GlobalVar, Function] = {}
        self._names = names

    def applied(self, name: str, function: Function) -> Function:
        """One global function, its regions called by name."""
        calls = [
            expr
            for expr in Dataflow.of(function).nodes
            if isinstance(expr, Call) and isinstance(expr.op, Function) and "Compiler" in expr.op.attrs
        ]
        if not calls:
            return function
        literals = dict.fromkeys(call.op for call in calls if isinstance(call.op, Function))
        lifted = {
            literal: self._lift(_wanted(literal, name, number), literal)
            for number, literal in enumerate(literals)
        }
        lifted_calls: dict[Expr, _Lifted] = {
            call: lifted[call.op] for call in calls if isinstance(call.op, Function)
        }
        return _with_calls(function, lifted_calls)

    def _lift(self, wanted: str, literal: Function) -> _Lifted:
        name = self._names.fresh(wanted)
        captured = free_vars(literal)
        closed = _closed(literal, captured)
        closed = with_fields(closed, attrs=closed.attrs.updated(global_symbol=name))
        callee = GlobalVar(name, checked_type=closed.checked_type, span=literal.span)
        self.lifted[callee] = closed
        return _Lifted(callee, captured)


def _wanted(literal: Function, caller: str, number: int) -> str:
    """The name in a literal's `global_symbol`, or one made of caller, toolchain and number."""
    compiler = str(literal.attrs["Compiler"])
    return str(literal.attrs.get("global_symbol") or "_".join((caller, compiler, str(number))))


def _closed(literal: Function, captured: tuple[Var, ...]) -> Function:
    """The literal with further parameters for the variables that it uses from around."""
    if not captured:
        return literal
    fresh: dict[Expr, Var] = {var: with_fields(var, name=f"{var.name}_captured") for var in captured}
    closed = substitute(literal, dict(fresh))
    assert isinstance(closed, Function)
    return with_fields(closed, params=(*closed.params, *fresh.values()), checked_type=None)


def _with_calls(function: Function, lifted: dict[Expr, _Lifted]) -> Function:
    """The function with some calls made by name."""
    done: dict[Expr, Expr] = {}
    for expr in post_order(function):
        new = with_children(expr, tuple(done[child] for child in children(expr)))
        part = lifted.get(expr)
        if part is not None and isinstance(new, Call):
            new = with_fields(new, op=part.callee, args=(*new.args, *part.captured))
        done[expr] = new
    after = done[function]
    assert isinstance(after, Function)
    return after
