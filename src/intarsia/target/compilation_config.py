"""The targets of one compilation, and the virtual devices that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.support.errors import UsageError
from intarsia.target.device_type import DeviceType
from intarsia.target.target import Target
from intarsia.target.virtual_device import VirtualDevice


@dataclass(frozen=True, slots=True)
class CompilationConfig:
    """Targets of a program's primitive functions and of its host code, and the device type of its values.

    Several targets may share a device kind: the plain target of the device first, then at most one target
    of each toolchain, all of which refine it. A single target may name a toolchain without a plain one.

    Attributes:
        primitive_targets: The targets to choose from, in the order of preference.
        host: The target of the code that calls the kernels, or None to choose it by rule.
        fallback_device_type: The device type of values that nothing constrains, or None to choose it by rule.

    Raises:
        UsageError: No targets, two targets of one toolchain, no plain target before several others of its
            kind, a host that is not a plain cpu target, or no target for the default device type.
    """

    primitive_targets: tuple[Target, ...]
    host: Target | None = None
    fallback_device_type: DeviceType | None = None

    def __post_init__(self) -> None:
        if not self.primitive_targets:
            raise UsageError("no targets are given; expected at least one", help='such as Target("cpu")')
        for device_type in self.device_types:
            _check_group([target for target in self.primitive_targets if target.device_type is device_type])
        if self.host is not None and (self.host.is_external_codegen or self.host.kind != "cpu"):
            raise UsageError(f'the host target is "{self.host}"; expected a cpu target without toolchain')
        self.find_primitive_target_for_device_or_fail(self.default_device_type)

    @property
    def device_types(self) -> tuple[DeviceType, ...]:
        """The device types of the targets, each once, in the order of the targets."""
        return tuple(dict.fromkeys(target.device_type for target in self.primitive_targets))

    @property
    def host_target(self) -> Target:
        """The `host` given; else the first plain cpu target; else plain `cpu`."""
        if self.host is not None:
            return self.host
        cpus = (target for target in self.primitive_targets if target.kind == "cpu" and not target.toolchain)
        return next(cpus, Target("cpu"))

    @property
    def default_device_type(self) -> DeviceType:
        """The `fallback_device_type` given; else the only device type of the targets; else the cpu."""
        if self.fallback_device_type is not None:
            return self.fallback_device_type
        return self.device_types[0] if len(self.device_types) == 1 else DeviceType.CPU

    @property
    def default_primitive_virtual_device(self) -> VirtualDevice:
        """Device 0 of the default device type, with the first target for it."""
        return VirtualDevice.for_target(
            self.find_primitive_target_for_device_or_fail(self.default_device_type)
        )

    @property
    def host_virtual_device(self) -> VirtualDevice:
        """Device 0 of the host, with the host target."""
        return VirtualDevice.for_target(self.host_target)

    def find_primitive_target_for_device_or_fail(self, device_type: DeviceType) -> Target:
        """The first target of a device type: the plain one where there are several.

        Raises:
            UsageError: There is none.
        """
        for target in self.primitive_targets:
            if target.device_type is device_type:
                return target
        given = ", ".join(f'"{target}"' for target in self.primitive_targets)
        raise UsageError(f"no target is for device type {device_type.kind}; found {given}")

    def canonical_target(self, target: Target) -> Target:
        """This configuration's own object for an equal target, so that `is` suffices; any other as it is."""
        targets = (*self.primitive_targets, self.host_target)
        return next((same for same in targets if same == target), target)

    def canonical_virtual_device(self, device: VirtualDevice) -> VirtualDevice:
        """The virtual device with its target filled in; the only place where a device type becomes a target.

        Idempotent; number and memory scope stay as they are.

        Raises:
            UsageError: The device type is unconstrained, or no target is for it.
        """
        if device.device_type is None:
            raise UsageError(f"{device} has no device type; expected at least that to find its target")
        if device.target is None:
            target = self.find_primitive_target_for_device_or_fail(device.device_type)
        else:
            target = self.canonical_target(device.target)
        return VirtualDevice(device.device_type, device.virtual_device_id, target, device.memory_scope)


def _check_group(group: list[Target]) -> None:
    """Check the targets of one device type."""
    first_of: dict[str | None, Target] = {}
    for target in group:
        if target.toolchain in first_of:
            owner = f"toolchain {target.toolchain}" if target.toolchain else "no toolchain"
            first = first_of[target.toolchain]
            raise UsageError(f'targets "{first}" and "{target}" both name {owner}; expected one of them')
        first_of[target.toolchain] = target
    if len(group) > 1 and group[0].is_external_codegen:
        raise UsageError(
            f'the first of {len(group)} {group[0].kind} targets is "{group[0]}"; '
            "expected a target without toolchain, which the others refine",
            help=f'put Target("{group[0].kind}") first',
        )
