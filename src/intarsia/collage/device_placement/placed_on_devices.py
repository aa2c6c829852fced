"""A placement on devices as a transformation: what a trace names when it has decided what runs where."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.collage.device_placement.device_program import DeviceProgram
from intarsia.ir import IRModule
from intarsia.op.infer import infer_types
from intarsia.passes.plan_devices import PlanDevices
from intarsia.support.errors import UsageError
from intarsia.target import VirtualDevice
from intarsia.transform import PassContext
from intarsia.tune.transformations import transformation


@transformation
def placed_on_devices(mod: IRModule, devices: Sequence[str], assignment: Sequence[int]) -> IRModule:
    """The program with each input and operator on its device, and copies where devices differ.

    Args:
        mod: The program.
        devices: Texts of virtual devices.
        assignment: Index of the device for each input of @main, each operator in evaluation order, and a
            tuple that is returned.

    Raises:
        UsageError: The program has another number of them, or parts that cannot be placed.
    """
    program = DeviceProgram.of(infer_types(mod))
    if program is None:
        raise UsageError(
            "the program calls functions or has values of unknown shape: it cannot be placed on devices",
            help="run Inline before, and give the shapes of its inputs",
        )
    parsed = tuple(map(VirtualDevice.parse, devices))
    placed = program.annotated(tuple(assignment), parsed)
    with PassContext.current():
        return PlanDevices()(placed)
