"""Devices for everything, from annotations on some of it."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import IRModule
from intarsia.passes.devices.capture import captured
from intarsia.passes.devices.device_choice import choose_devices
from intarsia.passes.devices.device_config import device_config
from intarsia.passes.devices.flow_builder import flow_of
from intarsia.target import VirtualDevice
from intarsia.transform import ModulePass, PassContext, register_config_option, register_pass

FALLBACK_DEVICE = register_config_option(
    "PlanDevices.fallback_device",
    str,
    "",
    "kind of the device of values that nothing constrains; empty: that of the targets, or the cpu",
)


@register_pass
@dataclass(frozen=True)
class PlanDevices(ModulePass, opt_level=0, required=("InferType",), places_devices=True):
    """Gives every expression a virtual device, and puts copies where devices differ (reference part C).

    Annotations are calls of `on_device`, and devices that expressions carry. They are kept; what they leave
    open is chosen such that the fewest copies are needed, on the default device where that makes no
    difference. What a program returns is on the default device, unless a value of an annotated device gets
    there without passing an `on_device` that constrains its argument only.

    * Operators take all arguments on their own device. Shape and Size take a value anywhere, and are on the
      host.
    * A function has one device for each parameter and one for its result, for all calls.
    * A value is copied once to each device where it is needed. Constants are never copied at run time: each
      device has an expression of its own for the same array.
    * What is in the body of an operator, or in a function with Compiler or Primitive, is where its call is.
    * Annotations that contradict each other on one value are refused, both named.

    Afterwards no `on_device` is left. A planned program stays as it is. Near linear in the program.

    Before:
        def @main(%x: Tensor[(2,), float32], %y: Tensor[(2,), float32]) {
          %0 = Relu(%x);
          %1 = intarsia::on_device(%0) @device(mock:1);
          Add(%1, %y)
        }
    After:
        def @main(
            %x: Tensor[(2,), float32] @device(mock:1, target="mock"),
            %y: Tensor[(2,), float32] @device(cpu:0, target="cpu")
        ) @device(cpu:0, target="cpu") {
          %0 = Relu(%x) @device(mock:1, target="mock");
          %1 = intarsia::device_copy(%0) @device(cpu:0, target="cpu");
          Add(%1, %y) @device(cpu:0, target="cpu")
        }

    Attributes:
        targets: Texts of the targets to plan for; none: those of the device kinds that the program names, and
            the cpu.
        fallback_device: Kind of the default device; "": what the context says, else the only kind of the
            targets, else the cpu.
    """

    targets: tuple[str, ...] = ()
    fallback_device: str = ""

    def __post_init__(self) -> None:
        """Take a list of targets as well."""
        object.__setattr__(self, "targets", tuple(self.targets))

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The program with its devices.

        Raises:
            UsageError: No target for a device that is named.
            DeviceConflictError: Annotations contradict each other.
        """
        config = device_config(mod, self.targets, self.fallback_device or ctx.option(FALLBACK_DEVICE))
        default, host = config.default_primitive_virtual_device, config.host_virtual_device
        flow = flow_of(mod, VirtualDevice(host.device_type, host.virtual_device_id))
        choice = choose_devices(flow, mod, VirtualDevice(default.device_type, default.virtual_device_id))
        return captured(mod, choice, config)
