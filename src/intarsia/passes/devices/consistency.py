"""What a planned program is like: nothing without a device, and every value where it is needed."""

from __future__ import annotations

from collections.abc import Iterator

from intarsia.ir import (
    Call,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    children,
    post_order,
)
from intarsia.op.device_call import is_device_copy, is_shape_operator, placement_of
from intarsia.passes.devices.device_domains import place_of
from intarsia.passes.devices.indivisible_functions import insides, is_indivisible, marks_of
from intarsia.target import VirtualDevice


def is_planned(mod: IRModule) -> bool:
    """Whether devices have been planned: some function says in full where its result is."""
    return planned_device(mod) is not None


def planned_device(mod: IRModule) -> VirtualDevice | None:
    """Device of the result of the first function that states one; None in a program that is not planned."""
    for function in mod.graph_functions.values():
        if _is_complete(function.virtual_device) and not is_indivisible(function):
            return function.virtual_device
    return None


def device_gaps(mod: IRModule) -> Iterator[tuple[Expr, str]]:
    """Expressions of a program that planning would change, each with what is wrong. Linear."""
    functions = {var.name: function for var, function in mod.graph_functions.items()}
    for function in functions.values():
        seen: set[tuple[Expr, Expr]] = set()
        compiled = set(post_order(*insides(function)))
        for expr in post_order(function):
            if isinstance(expr, (Op, GlobalVar)):
                continue
            yield from ((expr, text) for text in _own_gaps(expr))
            for used, expected in () if expr in compiled else _uses(expr, functions):
                if not _is_function(used) and not _is_in(used, expected):
                    if (expr, used) not in seen:
                        yield (
                            expr,
                            f"needs a value on {expected.virtual_device} that is on {used.virtual_device}",
                        )
                    seen.add((expr, used))


def _own_gaps(expr: Expr) -> Iterator[str]:
    """What is wrong with an expression by itself."""
    if not _is_complete(expr.virtual_device):
        yield f"is on {expr.virtual_device}, which names no device, or no target"
    if placement_of(expr) is not None:
        yield "is an annotation"
    if isinstance(expr, Function) and is_indivisible(expr):
        device_place = place_of(expr.virtual_device)
        marks = (device for device, _ in marks_of(expr))
        if any(VirtualDevice.join(device_place, device) is None for device in marks):
            yield f"is on {device_place}, which something in it, or its target, contradicts"


def _uses(expr: Expr, functions: dict[str, Function]) -> Iterator[tuple[Expr, Expr]]:
    """The values that an expression takes, each with an expression that is where it has to be."""
    match expr:
        case Call() if is_device_copy(expr) or is_shape_operator(expr):
            return
        case Call(op=Op()):
            yield from ((arg, expr) for arg in expr.args)
        case Call():
            callee = functions.get(expr.op.name) if isinstance(expr.op, GlobalVar) else expr.op
            if is_indivisible(callee):
                yield from ((arg, expr) for arg in expr.args)
            elif isinstance(callee, Function):
                yield from zip(expr.args, callee.params, strict=False)
                yield callee.body, expr
        case Let():
            yield expr.value, expr.var
            yield expr.body, expr
        case Function() if not is_indivisible(expr):
            yield expr.body, expr
        case TupleGetItem() if not _is_function(expr):
            yield expr.tuple_value, expr
        case If() | Tuple():
            yield from ((child, expr) for child in children(expr))
        case _:
            return


def _is_function(expr: Expr) -> bool:
    """Whether a value is a function, which can be anywhere; its device says where its result is."""
    return isinstance(expr, (Op, GlobalVar, Function)) or isinstance(expr.checked_type, FuncType)


def _is_in(used: Expr, place: Expr) -> bool:
    here, there = used.virtual_device, place.virtual_device
    is_there = (here.device_type, here.virtual_device_id) == (there.device_type, there.virtual_device_id)
    return is_there and there.memory_scope in ("", here.memory_scope)


def _is_complete(device: VirtualDevice) -> bool:
    return None not in (device.device_type, device.virtual_device_id, device.target)
