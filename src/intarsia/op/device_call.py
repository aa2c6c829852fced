"""Calls that say where values are: annotations, and copies between devices."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Attrs, AttrValue, Call, Expr, Op, Span, with_fields
from intarsia.op.call import call
from intarsia.op.intarsia_ops import ON_DEVICE_FLAGS
from intarsia.op.operator_facts import OperatorTrait
from intarsia.op.operator_table import facts_of
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.target import VirtualDevice

_ON_DEVICE = "on_device"
_DEVICE_COPY = "device_copy"


@dataclass(frozen=True, slots=True)
class DeviceCallPlacement:
    """Device that a call of on_device annotates its argument with.

    Attributes:
        device: The annotated device.
        constrain_body: Whether the argument is computed there.
        constrain_result: Whether the value of the call itself is there.
    """

    device: VirtualDevice
    constrain_body: bool
    constrain_result: bool


def on_device(
    expr: Expr,
    device: VirtualDevice,
    *,
    constrain_body: bool = True,
    constrain_result: bool = False,
    span: Span | None = None,
) -> Call:
    """Annotate an expression with a device; the value stays the same (reference C.3).

    Args:
        expr: Expression that is annotated.
        device: The device meant; it may leave open what it does not matter.
        constrain_body: Whether `expr` is computed there.
        constrain_result: Whether the value of the annotation itself is there too. Without, users of the value
            may be elsewhere, and get a copy. Alone it means: the value is there, wherever `expr` is.
        span: Location of the annotation in the source; default: that of `expr`.
    """
    given = {"constrain_body": int(constrain_body), "constrain_result": int(constrain_result)}
    flags: dict[str, AttrValue] = {
        name: value for name, value in given.items() if value != ON_DEVICE_FLAGS[name]
    }
    made = call(_ON_DEVICE, expr, domain=INTARSIA_DOMAIN, span=span or expr.span)
    return with_fields(made, attrs=Attrs(flags), virtual_device=device)


def device_copy(expr: Expr, device: VirtualDevice, *, span: Span | None = None) -> Call:
    """A copy of a value on another device; default for `span`: that of `expr`."""
    made = call(_DEVICE_COPY, expr, domain=INTARSIA_DOMAIN, span=span or expr.span)
    return with_fields(made, virtual_device=device)


def placement_of(expr: Expr) -> DeviceCallPlacement | None:
    """What an expression annotates its argument with, if it is a call of on_device."""
    if not _calls(expr, _ON_DEVICE):
        return None
    assert isinstance(expr, Call)
    flags = (bool(expr.attrs.get(name, default)) for name, default in ON_DEVICE_FLAGS.items())
    return DeviceCallPlacement(expr.virtual_device, *flags)


def is_device_copy(expr: Expr) -> bool:
    """Whether an expression is a call of device_copy."""
    return _calls(expr, _DEVICE_COPY)


def is_shape_operator(expr: Expr) -> bool:
    """Whether an expression looks at no element of its argument, which then may be on any device."""
    match expr:
        case Call(op=Op() as op):
            return facts_of(op).has(OperatorTrait.READS_SHAPE)
        case _:
            return False


def _calls(expr: Expr, name: str) -> bool:
    match expr:
        case Call(op=Op(domain=domain, name=found)):
            return domain == INTARSIA_DOMAIN and found == name
        case _:
            return False
