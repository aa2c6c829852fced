"""What a program must keep to, to be built: numbers of arguments and of fields, and where values are."""

from __future__ import annotations

from intarsia.build.device_map import DeviceMap
from intarsia.build.slot_value import SlotValue
from intarsia.build.uses import shown
from intarsia.ir import Call, Expr, Function, TupleGetItem
from intarsia.support.errors import InvalidModelError


def check_arity(name: str, call: Call, function: Function) -> None:
    """See to it that a call has as many arguments as the function has parameters.

    Args:
        name: The function that the call is in.
        call: The call.
        function: What it calls.

    Raises:
        InvalidModelError: It has not.
    """
    if len(call.args) != len(function.params):
        raise InvalidModelError(
            f"in @{name}, {shown(call.op)} is called with {len(call.args)} arguments, "
            f"expected {len(function.params)}"
        )


def field_of(name: str, expr: TupleGetItem, whole: SlotValue) -> SlotValue:
    """The field that an expression in function `name` takes of a tuple.

    Raises:
        InvalidModelError: There is no such field.
    """
    if not isinstance(whole, tuple) or expr.index >= len(whole):
        raise InvalidModelError(f"in @{name}, field {expr.index} is taken of {shown(expr.tuple_value)}")
    return whole[expr.index]


def stranger(name: str, expr: Expr, devices: DeviceMap, here: int, there: int) -> InvalidModelError:
    """The error for an expression in function `name` on a device that reads a value of another one."""
    return InvalidModelError(
        f"in @{name}, {shown(expr)} is on {devices.names[here]} and reads a value that is on "
        f"{devices.names[there]}",
        help="a device_copy is missing; run PlanDevices before build",
    )
