"""Small passes and a program that tests of the pass infrastructure share."""

from __future__ import annotations

from dataclasses import dataclass

from tests.ir_programs import relu, var

from intarsia.ir import (
    Function,
    IRModule,
    with_fields,
)
from intarsia.op import call
from intarsia.transform import (
    FunctionPass,
    ModulePass,
    PassContext,
    function_pass,
    module_pass,
)


def abs_function() -> Function:
    x = var()
    return Function((x,), call("Abs", x))


def program() -> IRModule:
    x = var()
    return IRModule.from_expr(Function((x,), relu(x)))


@module_pass(opt_level=2)
def add_abs(mod: IRModule, ctx: PassContext) -> IRModule:
    """Adds @abs."""
    return mod.with_function("abs", abs_function())


class _ReplaceFunction:
    """Every function becomes another."""

    def __init__(self, new: Function) -> None:
        self.new = new

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return self.new


ReplaceFunction = function_pass(opt_level=1, name="ReplaceFunction")(_ReplaceFunction)


@dataclass(frozen=True)
class AppendRelu(FunctionPass, opt_level=1):
    """Applies Relu to the result."""

    times: int = 1

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        body = function.body
        for _ in range(self.times):
            body = relu(body)
        return with_fields(function, body=body)


def named(name: str, log: list[str], opt_level: int = 0, **constraints: object) -> ModulePass:
    def note(mod: IRModule, ctx: PassContext) -> IRModule:
        log.append(name)
        return mod

    made: ModulePass = module_pass(opt_level=opt_level, name=name)(note)
    return made.with_info(**constraints)


@module_pass(opt_level=0)
def first(mod: IRModule, ctx: PassContext) -> IRModule:
    return mod


@module_pass(opt_level=0)
def second(mod: IRModule, ctx: PassContext) -> IRModule:
    return mod


@module_pass(opt_level=0)
def failing(mod: IRModule, ctx: PassContext) -> IRModule:
    raise RuntimeError("the pass fails")


@function_pass(opt_level=0)
def add_relu(function: Function, mod: IRModule, ctx: PassContext) -> Function:
    return Function(function.params, relu(function.body), function.attrs)
