"""Open the devices of a plan on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from intarsia.runtime.devices.core_groups import allowed_cores, core_groups
from intarsia.runtime.devices.cpu import CpuDevice
from intarsia.runtime.devices.device import DEVICES, Device, device_class
from intarsia.runtime.devices.device_name import DeviceName
from intarsia.runtime.devices.mock import MockDevice
from intarsia.runtime.kernel import Kernel
from intarsia.runtime.plan import ExecutionPlan, RunKernel
from intarsia.runtime.step_lists import flattened
from intarsia.target.target import Target

for _built_in in (CpuDevice, MockDevice):
    DEVICES.register(_built_in.kind, _built_in)


def open_devices(names: Sequence[str], threads: Sequence[int | None]) -> tuple[Device, ...]:
    """Open devices by name, and divide the cores of this machine among the CPU devices.

    Args:
        names: Names of the devices, such as "cpu:0" (`ExecutionPlan.devices`).
        threads: Number of threads of each device, None where unspecified.

    Raises:
        UsageError: There is no such kind of device.
        MissingToolchainError: What the device needs is not usable here.
    """
    parsed = [DeviceName.parse(name) for name in names]
    sizes = group_sizes(names, threads)
    groups = iter(core_groups([size for size in sizes if size is not None], allowed_cores()))
    opened: list[Device] = []
    with ExitStack() as closing:
        for name, size in zip(parsed, sizes, strict=True):
            device = device_class(name.kind)(name, () if size is None else next(groups))
            closing.callback(device.close)
            opened.append(device)
        closing.pop_all()
    return tuple(opened)


def group_sizes(names: Sequence[str], threads: Sequence[int | None]) -> tuple[int | None, ...]:
    """Return the number of cores that each device gets on this machine; None for devices other than CPUs."""
    is_cpu = [DeviceName.parse(name).kind == "cpu" for name in names]
    wanted = [size for size, cpu in zip(threads, is_cpu, strict=True) if cpu]
    sizes = iter([len(group) for group in core_groups(wanted, allowed_cores())])
    return tuple(next(sizes) if cpu else None for cpu in is_cpu)


def kernel_devices(plan: ExecutionPlan, kernels: int) -> tuple[int, ...]:
    """Return the number of the device of each of the plan's kernels."""
    owners = [0] * kernels
    for block in plan.blocks.values():
        for step in (step for steps in flattened(block.steps) for step in steps):
            if isinstance(step, RunKernel):
                owners[step.kernel] = step.device
    return tuple(owners)


def threads_of(plan: ExecutionPlan, targets: Sequence[str]) -> tuple[int | None, ...]:
    """Return the number of threads that each device's kernels were compiled for; None if unspecified.

    Args:
        plan: The plan.
        targets: Text of each kernel's target.
    """
    most: list[int | None] = [None] * len(plan.devices)
    if not plan.devices:
        return ()
    for text, device in zip(targets, kernel_devices(plan, len(targets)), strict=True):
        option = Target(text).option("threads")
        if isinstance(option, int):
            most[device] = max(option, most[device] or 1)
    return tuple(most)


def devices_of(plan: ExecutionPlan, kernels: Iterable[Kernel]) -> tuple[Device, ...]:
    """Open the devices of a plan for kernels that are compiled already.

    Raises:
        UsageError: There is no such kind of device.
        MissingToolchainError: What a device needs is not usable here.
    """
    targets = [kernel.source.target for kernel in kernels] if plan.devices else []
    return open_devices(plan.devices, threads_of(plan, targets))
