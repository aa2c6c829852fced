"""Passes with a bug each, and a program of about forty operators that all of them fail on."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import numpy as np

from intarsia.driver.reproducer.pass_failure import FailureKind
from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    Tuple,
    Var,
    post_order,
    rewrite,
    with_children,
    with_fields,
)
from intarsia.op import call, rewrite_typed
from intarsia.target import UNCONSTRAINED, DeviceType, VirtualDevice
from intarsia.transform import Pass, PassContext, function_pass, module_pass

SHAPE: Final = (2, 3)


def long_program(device: VirtualDevice = UNCONSTRAINED) -> IRModule:
    """A program in which every operator of the bugs stands among others."""
    x = Var("x", checked_type=TensorType(SHAPE, DType.FLOAT32))
    scale = Constant(np.linspace(0.5, 1.5, 6, dtype=np.float32).reshape(SHAPE))
    value: Expr = x
    for _ in range(3):
        value = call("Abs", call("Tanh", call("Add", value, scale)))
        value = call("Sub", call("Mul", value, scale), call("Neg", value))
        turned = call("Transpose", value, perm=(1, 0))
        value = call("Transpose", call("Softmax", turned, axis=0), perm=(1, 0))
        value = call("Relu", call("Sub", call("Exp", value), scale))
        value = call("Div", value, call("Add", call("Abs", value), Constant(np.array(1, np.float32))))
    main = Function((x,), value)
    return IRModule.from_expr(main if device is UNCONSTRAINED else _on(device, main))


def _on(device: VirtualDevice, main: Function) -> Function:
    """The function with all its values on one device."""
    param = with_fields(main.params[0], virtual_device=device)
    done: dict[Expr, Expr] = {main.params[0]: param}
    for expr in post_order(main.body):
        if isinstance(expr, Call):
            new = with_children(expr, (done[expr.op], *(done[arg] for arg in expr.args)))
            done[expr] = with_fields(new, virtual_device=device)
        else:
            done.setdefault(expr, expr)
    return Function((param,), done[main.body], virtual_device=device)


def _is(expr: Expr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


def _has(function: Function, name: str) -> bool:
    return any(_is(expr, name) for expr in post_order(function))


def _rewriting(name: str, rule: Callable[[Call], Expr]) -> Callable[[Function], Function]:
    """A function that applies a rule to each call of an operator."""

    def transform(function: Function) -> Function:
        after = rewrite_typed(function, lambda e: rule(e) if isinstance(e, Call) and _is(e, name) else e)
        assert isinstance(after, Function)
        return after

    return transform


def _as_pass(name: str, transform: Callable[[Function], Function], **facts: bool) -> Pass:
    @function_pass(opt_level=0, name=name, **facts)  # type: ignore[arg-type]  # facts of one kind
    def buggy(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        return transform(function)

    return buggy


def _raise(function: Function) -> Function:
    if _has(function, "Softmax"):
        raise KeyError("axis")
    return function


def _never_end(function: Function) -> Function:
    while _has(function, "Tanh"):
        pass
    return function


def _crash(function: Function) -> Function:
    if _has(function, "Exp"):
        os._exit(9)
    return function


def _mistype(function: Function) -> Function:
    wide = TensorType((7, 7), DType.FLOAT32)
    after = rewrite(function, lambda e: with_fields(e, checked_type=wide) if _is(e, "Exp") else e)
    assert isinstance(after, Function)
    return after


def _unbind(function: Function) -> Function:
    return Function((), function.body) if _has(function, "Div") else function


def _drop_devices(function: Function) -> Function:
    after = rewrite(function, lambda e: with_fields(e, virtual_device=UNCONSTRAINED) if _is(e, "Neg") else e)
    assert isinstance(after, Function)
    return after


def _shift_constant(found: Call) -> Expr:
    match found.args[1]:
        case Constant(data=data):
            return call("Mul", found.args[0], Constant(data + np.float32(0.01)))
        case _:
            return found


def _add_output(function: Function) -> Function:
    return (
        Function(function.params, Tuple((function.body, function.body)))
        if _has(function, "Relu")
        else function
    )


@module_pass(opt_level=0, name="LoseModule")
def _lose_module(mod: IRModule, ctx: PassContext) -> IRModule:
    return mod if not _has(mod["main"], "Relu") else None  # type: ignore[return-value]  # the bug


PLANTED: Final[dict[str, tuple[FailureKind, Pass]]] = {
    "wrong constant": (FailureKind.WRONG, _as_pass("ShiftConstant", _rewriting("Mul", _shift_constant))),
    "dropped operator": (
        FailureKind.WRONG,
        _as_pass("DropRelu", _rewriting("Relu", lambda found: found.args[0])),
    ),
    "swapped operands": (
        FailureKind.WRONG,
        _as_pass("SwapSub", _rewriting("Sub", lambda found: call("Sub", *found.args[::-1]))),
    ),
    "wrong attribute": (
        FailureKind.WRONG,
        _as_pass(
            "SoftmaxAxis", _rewriting("Softmax", lambda found: with_fields(found, attrs=Attrs({"axis": 1})))
        ),
    ),
    "one output more": (FailureKind.WRONG, _as_pass("AddOutput", _add_output)),
    "wrong type": (FailureKind.BROKEN, _as_pass("Mistype", _mistype)),
    "unbound variable": (FailureKind.BROKEN, _as_pass("Unbind", _unbind)),
    "lost device": (FailureKind.DEVICES, _as_pass("DropDevices", _drop_devices, places_devices=True)),
    "raising": (FailureKind.RAISED, _as_pass("Raise", _raise)),
    "no module": (FailureKind.RAISED, _lose_module),
    "non-terminating": (FailureKind.TIMED_OUT, _as_pass("NeverEnd", _never_end)),
    "crashing": (FailureKind.CRASHED, _as_pass("Crash", _crash)),
}
"""The bugs by name: the kind of the failure, and the pass."""

PLANNED: Final = VirtualDevice(DeviceType.CPU)
