"""Fusion kind and label of a node: what rules combine by, and what people read."""

from __future__ import annotations

from typing import Final

from intarsia.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
)
from intarsia.op import OpPatternKind, op_pattern
from intarsia.op.constant_argument import has_open_shape
from intarsia.op.purity import is_random

PATTERN_ATTRIBUTE: Final = "TOpPattern"
"""Of a function: the fusion kind of its calls, as a number."""


def node_kind(expr: Expr) -> OpPatternKind:
    """The fusion kind of an expression (seed collage_rfc; the kinds are those of `op.op_pattern`).

    A call has its operator's. It is OPAQUE if the shape of its result depends on values, or if it draws
    random numbers. Constants are ELEMWISE. Tuples and their fields are INJECTIVE if they hold tensors. A
    call of a function has the kind that the function's attribute TOpPattern says. All else is OPAQUE.
    """
    match expr:
        case Call(op=Op() as op):
            return OpPatternKind.OPAQUE if has_open_shape(expr) or is_random(expr) else op_pattern(op)
        case Call(op=Function() as function):
            kind = function.attrs.get(PATTERN_ATTRIBUTE)
            return OpPatternKind(kind) if isinstance(kind, int) else OpPatternKind.OPAQUE
        case Constant():
            return OpPatternKind.ELEMWISE
        case Tuple(fields=fields):
            return _kind_of_values(fields)
        case TupleGetItem():
            return _kind_of_values((expr,))
        case _:
            return OpPatternKind.OPAQUE


def _kind_of_values(values: tuple[Expr, ...]) -> OpPatternKind:
    is_injective = all(isinstance(value.checked_type, TensorType) for value in values)
    return OpPatternKind.INJECTIVE if is_injective else OpPatternKind.OPAQUE


def node_label(expr: Expr) -> str:
    """What an expression is called in the label of a sub-graph; "" for what is not mentioned."""
    match expr:
        case Call(op=Op() as op):
            return str(op)
        case Call(op=GlobalVar() as callee):
            return callee.name
        case Call(op=Function() as function):
            return str(function.attrs.get("Composite", function.attrs.get("Compiler", "fn")))
        case Call():
            return "call"
        case Constant():
            return "scalar" if expr.data.ndim == 0 else "const"
        case Tuple(fields=(_, *_)):
            return "tuple"
        case TupleGetItem():
            return "field"
        case If():
            return "if"
        case Let():
            return "let"
        case _:
            return ""
