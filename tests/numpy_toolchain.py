"""A toolchain "numpy" that evaluates functions of the language naively, by recursion, to compare with."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from intarsia.runtime.availability import Available
from intarsia.runtime.kernel import Array, KernelSource, Value
from intarsia.target import Target
from intarsia.toolchain.protocol import FusionStyle, OnnxLimits

_ARITHMETIC = {"Add": "add", "Sub": "sub", "Mul": "mul", "Neg": "neg", "Greater": "gt"}
Env = dict[Expr, Any]


def evaluate(function: Function, args: Sequence[Any], module: IRModule | None = None) -> Any:
    """The value of a closed function; arrays, and tuples of values."""
    return _Evaluator(module).apply(function, args, {})


class _Evaluator:
    def __init__(self, module: IRModule | None) -> None:
        self._module = module

    def apply(self, function: Function, args: Sequence[Any], env: Env) -> Any:
        return self.value(function.body, {**env, **dict(zip(function.params, args, strict=True))})

    def value(self, expr: Expr, env: Env) -> Any:
        if expr not in env:
            env[expr] = self._compute(expr, env)
        return env[expr]

    def _compute(self, expr: Expr, env: Env) -> Any:
        match expr:
            case Constant():
                return expr.data
            case Tuple():
                return tuple(self.value(field, env) for field in expr.fields)
            case TupleGetItem():
                return self.value(expr.tuple_value, env)[expr.index]
            case Function():
                return lambda *args: self.apply(expr, args, dict(env))
            case GlobalVar():
                module = self._module
                assert module is not None
                return lambda *args: self.apply(module[expr.name], args, {})
            case Let():
                return self.value(expr.body, {**env, expr.var: self.value(expr.value, env)})
            case If():
                branch = expr.true_branch if self.value(expr.cond, env) else expr.false_branch
                return self.value(branch, dict(env))
            case Call(op=Op(name=name)):
                args = [self.value(arg, env) for arg in expr.args]
                return _operator(name, args, expr.attrs)
            case Call():
                return self.value(expr.op, env)(*(self.value(arg, env) for arg in expr.args))
            case _:
                raise AssertionError(f"{expr} has no value")


def _operator(name: str, args: list[Any], attrs: Any) -> Any:
    match name:
        case "Add" | "Sub" | "Mul" | "Neg" | "Greater":
            return np.asarray(getattr(operator, _ARITHMETIC[name])(*args))
        case "Split":
            return tuple(np.split(args[0], attrs["outputs"], axis=attrs.get("axis", 0)))
        case "Clip":
            low = args[1] if len(args) > 1 and not isinstance(args[1], tuple) else None
            return np.clip(args[0], low, args[2] if len(args) > 2 else None)
        case "Loop":
            count, _, state, body = args
            for number in range(int(count)):
                _, state = body(np.array(number), np.array(True), state)
            return (state,)
        case _:
            raise AssertionError(f"the NumPy toolchain does not know {name}")


def flat(value: Any) -> list[Any]:
    """The arrays of nested tuples."""
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


class NumpyKernel:
    """Evaluates one function; counts its runs."""

    def __init__(self, function: Function, module: IRModule | None, target: Target) -> None:
        self.source = KernelSource("numpy", str(target), b"")
        self.function, self._module = function, module
        self.calls = 0

    def blob(self) -> bytes | None:
        return None

    def run(self, inputs: Sequence[Value], outputs: Sequence[Array | None]) -> list[Value]:
        self.calls += 1
        found = flat(evaluate(self.function, inputs, self._module))
        for index, output in enumerate(outputs):
            if output is not None:
                output[...] = found[index]
                found[index] = output
        return found


class NumpyToolchain:
    """See the module."""

    name: ClassVar[str] = "numpy"
    fusion_style: ClassVar[FusionStyle] = FusionStyle.NONE
    onnx_limits: ClassVar[OnnxLimits] = OnnxLimits(26, 13)
    thread_policy: ClassVar[str] = "one thread"
    conflicts: ClassVar[frozenset[str]] = frozenset()

    def availability(self) -> Available:
        return Available(np.__version__)

    def supports(self, call: Call) -> bool:
        return isinstance(call.op, Op)

    def compile(self, function: Function, target: Target, module: IRModule | None = None) -> NumpyKernel:
        bound = set(_binders(function))
        free = [node for node in _variables(function) if node not in bound]
        assert not free, f"the function is not closed: {free}"
        return NumpyKernel(function, module, target)

    def load(self, source: KernelSource, blob: bytes | None = None) -> NumpyKernel:
        raise AssertionError("the NumPy toolchain saves nothing")


def _variables(function: Function) -> list[Var]:
    from intarsia.ir import post_order

    return [node for node in post_order(function) if isinstance(node, Var)]


def _binders(function: Function) -> list[Var]:
    from intarsia.ir import post_order

    found: list[Var] = []
    for node in post_order(function):
        if isinstance(node, Function):
            found += node.params
        elif isinstance(node, Let):
            found.append(node.var)
    return found
