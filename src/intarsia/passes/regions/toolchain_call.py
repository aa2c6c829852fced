"""Calls that can be given to a toolchain, and the toolchain that each is given to."""

from __future__ import annotations

from collections.abc import Iterator

from intarsia.ir import Call, Expr, Function, FuncType, Op, TupleType, Type, post_order
from intarsia.op.operator_predicate import OperatorPredicate
from intarsia.op.pattern_table import composite_toolchain

_DEVICE_OPERATORS = frozenset({"on_device", "device_copy"})
"""Of the domain intarsia: they say where values live, no toolchain computes them."""


def is_candidate(expr: Expr) -> bool:
    """Whether an expression may be given to a toolchain at all.

    It is a call of an operator or of a Composite function whose values are all of known type, and no tuples:
    they become parameters and results of a function that is compiled on its own.
    """
    if not isinstance(expr, Call) or not (_is_operator(expr) or composite_of(expr) is not None):
        return False
    values = (arg for arg in expr.args if not isinstance(arg, Function))
    return all(_is_value(arg.checked_type) for arg in values) and all(
        map(_is_known, _parts(expr.checked_type))
    )


def is_supported(call: Call, toolchain: str, predicate: OperatorPredicate) -> bool:
    """Whether a toolchain can run a candidate: by its predicate, or because it is a Composite function of it.

    A Composite function of no toolchain (an operator in another layout), and an operator with a body, is
    supported if all that is called in there is.
    """
    owner = composite_toolchain(composite_of(call))
    if owner is not None:
        return owner == toolchain
    bodies = [child for child in (call.op, *call.args) if isinstance(child, Function)]
    called = [expr for expr in (*post_order(*bodies), call) if isinstance(expr, Call)]
    return all(
        isinstance(item.op, Op) and predicate(item) for item in called if not isinstance(item.op, Function)
    )


def composite_of(call: Call) -> object:
    """The attribute Composite of the function literal that is called; None if there is none."""
    return call.op.attrs.get("Composite") if isinstance(call.op, Function) else None


def assigned_toolchain(call: Call) -> str | None:
    """The toolchain that a call is given to: that of its virtual device's target."""
    target = call.virtual_device.target
    return None if target is None else target.toolchain


def _is_operator(call: Call) -> bool:
    return isinstance(call.op, Op) and not (
        call.op.domain == "intarsia" and call.op.name in _DEVICE_OPERATORS
    )


def _is_value(type_: Type | None) -> bool:
    """Whether a value of the type can be an argument; the absent value is a tuple of nothing."""
    return type_ == TupleType(()) or (type_ is not None and not isinstance(type_, (TupleType, FuncType)))


def _parts(type_: Type | None) -> Iterator[Type | None]:
    if isinstance(type_, TupleType):
        for field in type_.fields:
            yield from _parts(field)
    else:
        yield type_


def _is_known(type_: Type | None) -> bool:
    return type_ is not None and not isinstance(type_, FuncType)
