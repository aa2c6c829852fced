"""Language features of a program, so that a pass is never run on what it does not handle.

Source: discussion of seed relax_pass_infra (feature flags with automatic enforcement).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    OptionalType,
    SequenceType,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    free_vars,
    post_order,
)
from intarsia.support.errors import UnsupportedModelError


class ProgramFeature(StrEnum):
    """A part of the language that some passes cannot work on."""

    CONTROL_FLOW = "control flow"
    LET = "let"
    TUPLE = "tuples"
    FUNCTION_VALUE = "function values"
    CLOSURE = "closures"
    GLOBAL_CALL = "calls of global functions"
    RECURSION = "recursion"
    DYNAMIC_SHAPE = "dynamic shapes"
    QUANTISED_TYPE = "quantised types"
    SEQUENCE_TYPE = "sequence and optional types"


@dataclass(frozen=True, slots=True)
class FeatureUse:
    """Where a feature is used first.

    Attributes:
        function: Name of the global function.
        expr: The expression that uses the feature.
    """

    function: str
    expr: Expr

    def __str__(self) -> str:
        """`If in @main (node 'cond')`."""
        match self.expr:
            case Call(op=Op() as op):
                what = str(op)
            case Call(op=GlobalVar(name=name)):
                what = f"call of @{name}"
            case _:
                what = type(self.expr).__name__
        span = self.expr.span
        return f"{what} in @{self.function}" + (f" (node {span.node!r} of {span.source})" if span else "")


@dataclass(eq=False)
class UnhandledFeatureError(UnsupportedModelError):
    """A pass was run on a program with a feature that it does not handle."""


def require_features(
    mod: IRModule, pass_name: str, handles: frozenset[ProgramFeature], help_text: str = ""
) -> None:
    """Check that a program has no other features than those.

    Raises:
        UnhandledFeatureError: It has; feature and place are named.
    """
    for feature, use in find_features(mod).items():
        if feature not in handles:
            raise UnhandledFeatureError(
                f"pass {pass_name} does not handle {feature}: {use}",
                help=help_text or f"disable it with PassContext(disabled_pass=[{pass_name!r}])",
            )


def find_features(mod: IRModule) -> Mapping[ProgramFeature, FeatureUse]:
    """The features of a program, each with its first use.

    Linear in the program, times the depth of function literals inside each other.
    """
    first_uses: dict[ProgramFeature, FeatureUse] = {}
    for var, function in mod.functions.items():
        if not isinstance(function, Function):
            continue
        for expr in post_order(function):
            for feature in _features(expr, is_global=expr is function):
                first_uses.setdefault(feature, FeatureUse(var.name, expr))
    recursive = _recursive_call(mod)
    if recursive is not None:
        first_uses.setdefault(ProgramFeature.RECURSION, recursive)
    return first_uses


def _features(expr: Expr, *, is_global: bool) -> Iterator[ProgramFeature]:
    match expr:
        case If():
            yield ProgramFeature.CONTROL_FLOW
        case Let():
            yield ProgramFeature.LET
        case Tuple(fields=fields) if fields:
            yield ProgramFeature.TUPLE
        case TupleGetItem():
            yield ProgramFeature.TUPLE
        case Call(op=GlobalVar()):
            yield ProgramFeature.GLOBAL_CALL
        case Call(op=Op(), args=args) if any(isinstance(arg, Function) for arg in args):
            yield ProgramFeature.CONTROL_FLOW
        case Function() if not is_global:
            yield ProgramFeature.FUNCTION_VALUE
            if free_vars(expr):
                yield ProgramFeature.CLOSURE
        case _:
            pass
    if not isinstance(expr, (Op, GlobalVar)):
        yield from _features_of_type(expr)


def _features_of_type(expr: Expr) -> Iterator[ProgramFeature]:
    match expr.checked_type:
        case TensorType(shape=shape, dtype=dtype):
            if shape is None or not all(isinstance(dim, int) for dim in shape):
                yield ProgramFeature.DYNAMIC_SHAPE
            if _is_quantised(dtype) and not isinstance(expr, Constant):
                yield ProgramFeature.QUANTISED_TYPE
        case TupleType(fields=fields) if fields:
            yield ProgramFeature.TUPLE
        case SequenceType() | OptionalType():
            yield ProgramFeature.SEQUENCE_TYPE
        case _:
            pass


def _is_quantised(dtype: DType) -> bool:
    """Whether an element has eight bits or fewer, and is no truth value."""
    return dtype not in (DType.BOOL, DType.STRING) and dtype.numpy.itemsize == 1


def _recursive_call(mod: IRModule) -> FeatureUse | None:
    """A call that closes a cycle of global functions."""
    calls = {
        var.name: {
            expr.op.name: expr
            for expr in post_order(function)
            if isinstance(expr, Call) and isinstance(expr.op, GlobalVar)
        }
        for var, function in mod.functions.items()
        if isinstance(function, Function)
    }
    finished: set[str] = set()
    for root, callees in calls.items():
        path: dict[str, Iterator[str]] = {root: iter(callees)} if root not in finished else {}
        while path:
            name = next(reversed(path))
            callee = next(path[name], None)
            if callee is None:
                finished.add(name)
                del path[name]
            elif callee in path:
                return FeatureUse(name, calls[name][callee])
            elif callee in calls and callee not in finished:
                path[callee] = iter(calls[callee])
    return None
