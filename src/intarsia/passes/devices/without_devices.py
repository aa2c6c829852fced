"""A program with nothing said about devices: what it computes does not depend on them."""

from __future__ import annotations

from intarsia.ir import Call, Expr, Function, IRModule, children, post_order, with_children, with_fields
from intarsia.op.device_call import is_device_copy, placement_of
from intarsia.op.known_value import known_value, record_known_value
from intarsia.target import UNCONSTRAINED


def without_devices(mod: IRModule) -> IRModule:
    """Return the program without virtual devices, annotations and copies; the same one if it has none.

    Types and known values stay. Linear in the program.
    """
    for name, function in mod.graph_functions.items():
        if any(_names_a_device(expr) for expr in post_order(function)):
            mod = mod.with_function(name, _function_without_devices(function))
    return mod


def _names_a_device(expr: Expr) -> bool:
    return expr.virtual_device != UNCONSTRAINED or is_device_copy(expr) or placement_of(expr) is not None


def _function_without_devices(function: Function) -> Function:
    done: dict[Expr, Expr] = {}
    for expr in post_order(function):
        new = tuple(done[child] for child in children(expr))
        if is_device_copy(expr) or placement_of(expr) is not None:
            done[expr] = new[1]
            continue
        bare = with_children(expr, new)
        if bare.virtual_device != UNCONSTRAINED or bare.checked_type != expr.checked_type:
            bare = with_fields(bare, virtual_device=UNCONSTRAINED, checked_type=expr.checked_type)
        if isinstance(bare, Call) and bare is not expr and known_value(expr) is not None:
            record_known_value(bare)
        done[expr] = bare
    after = done[function]
    assert isinstance(after, Function)
    return after
