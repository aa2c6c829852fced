"""Functions that are compiled on their own, or matched for a toolchain: they lie on one device as a whole."""

from __future__ import annotations

from intarsia.ir import Call, Expr, Function, GlobalVar, Op, free_vars, post_order, with_children, with_fields
from intarsia.ir.scope import CLOSED
from intarsia.ir.traversal import children
from intarsia.op.device_call import placement_of
from intarsia.op.known_value import record_known_value
from intarsia.target import Target, VirtualDevice

_COMPOSITE = "Composite"


def is_indivisible(expr: Expr | None) -> bool:
    """Whether planning does not enter a function: it is closed, and has a mark that says what it is for."""
    if not isinstance(expr, Function):
        return False
    if any(name in expr.attrs for name in CLOSED):
        return True
    return _COMPOSITE in expr.attrs and not free_vars(expr)


def insides(*roots: Expr) -> set[Expr]:
    """Parameters and bodies of all indivisible functions: where a walk over a program stops."""
    found = (expr for expr in post_order(*roots) if is_indivisible(expr))
    return {child for expr in found for child in children(expr)}


def marks_of(function: Function) -> list[tuple[VirtualDevice, Expr]]:
    """What an indivisible function says about its device, each thing once: its target, and what is in it."""
    text = function.attrs.get("target")
    marks: dict[VirtualDevice, Expr] = {}
    if isinstance(text, str) and "Compiler" in function.attrs:
        marks[VirtualDevice(Target(text).device_type)] = function
    for expr in (function, *post_order(function)):
        device = expr.virtual_device  # the memory is its own
        marks.setdefault(VirtualDevice(device.device_type, device.virtual_device_id), expr)
    return list(marks.items())


def settled(function: Function, device: VirtualDevice) -> Function:
    """An indivisible function with everything in it on a device; targets and memories stay.

    Args:
        function: The function; annotations inside are dropped.
        device: Device of the function, with the target of what has none.
    """
    done: dict[Expr, Expr] = {}
    for expr in post_order(function):
        below = tuple(done[child] for child in children(expr))
        if placement_of(expr) is not None:
            done[expr] = below[1]
            continue
        new = with_children(expr, below)
        if new is not expr:
            new = with_fields(new, checked_type=expr.checked_type)
        if not isinstance(new, (Op, GlobalVar)):
            new = with_fields(new, virtual_device=refined(device, expr.virtual_device))
        if isinstance(new, Call) and new is not expr:
            record_known_value(new)
        done[expr] = new
    after = done[function]
    assert isinstance(after, Function)
    return after


def refined(device: VirtualDevice, annotated: VirtualDevice) -> VirtualDevice:
    """The device, with the target and memory that an expression there names itself."""
    target = annotated.target if annotated.device_type is device.device_type else None
    return VirtualDevice(
        device.device_type,
        device.virtual_device_id,
        target or device.target,
        device.memory_scope or annotated.memory_scope,
    )
