"""Devices for what other passes have built or moved."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import IRModule
from intarsia.passes.devices.capture import captured
from intarsia.passes.devices.consistency import device_gaps, is_planned, planned_device
from intarsia.passes.devices.device_choice import choose_upward
from intarsia.passes.devices.device_config import device_config
from intarsia.passes.devices.flow_builder import flow_of
from intarsia.target import VirtualDevice
from intarsia.transform import ModulePass, PassContext, register_pass
from intarsia.transform.completion import COMPLETIONS
from intarsia.transform.pass_info import PassInfo

_NAME = "PlanDevicesLite"


@register_pass
@dataclass(frozen=True)
class PlanDevicesLite(ModulePass, opt_level=0, places_devices=True):
    """Gives a device to each expression of a planned program that has none, and adds the copies that lack.

    Devices go strictly upward, from arguments to users (RFC 0045, "lite" device planning): an expression is
    where the first of its arguments is whose device is known. What has no such argument (constants,
    parameters) is where its user is, and the rest where the program's result is. Devices that are there stay.

    It is run after each pass that does not declare that it places devices, on programs that were planned.
    Linear; where nothing lacks, it only looks.

    Before:
        def @main(%x: Tensor[(2,), float32] @device(mock:1, target="mock")) @device(cpu:0, target="cpu") {
          %0 = Relu(%x);
          Neg(%0) @device(cpu:0, target="cpu")
        }
    After:
        def @main(%x: Tensor[(2,), float32] @device(mock:1, target="mock")) @device(cpu:0, target="cpu") {
          %0 = Relu(%x) @device(mock:1, target="mock");
          %1 = intarsia::device_copy(%0) @device(cpu:0, target="cpu");
          Neg(%1) @device(cpu:0, target="cpu")
        }
    """

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The program with its devices.

        Raises:
            DeviceConflictError: Devices that are there contradict each other.
        """
        if next(device_gaps(mod), None) is None:
            return mod
        config = device_config(mod, (), "")
        device = planned_device(mod) or config.default_primitive_virtual_device
        host = config.host_virtual_device
        flow = flow_of(mod, VirtualDevice(host.device_type, host.virtual_device_id))
        default = VirtualDevice(device.device_type, device.virtual_device_id)
        return captured(mod, choose_upward(flow, default), config)


def _fill_gaps(before: IRModule, after: IRModule, info: PassInfo, ctx: PassContext) -> IRModule:
    """Run PlanDevicesLite after a pass, if the program was planned and the pass does not place devices."""
    if info.places_devices or _NAME in ctx.disabled_pass or not is_planned(before):
        return after
    if next(device_gaps(before), None) is not None:  # annotated, but not planned
        return after
    return PlanDevicesLite().transform_module(after, ctx)


COMPLETIONS.register(_NAME, _fill_gaps)
