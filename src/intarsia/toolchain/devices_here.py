"""The devices of this machine, and which toolchains make kernels for them here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.runtime.cuda.gpu_facts import gpus_here
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.target import Host
from intarsia.target.device_type import DeviceType
from intarsia.toolchain.protocol import Available, Unavailable
from intarsia.toolchain.registered import availability_on, cpu_toolchains

KINDS: Final = (DeviceType.CPU.kind, DeviceType.CUDA.kind)
"""Kinds of device that toolchains may make kernels for; mocks run those for the CPU."""


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """A device, or a kind of device of which there is none.

    Attributes:
        name: Name such as "cuda:0"; the kind where there is none.
        description: Facts about it as text; "" where there is none.
        unavailable: Why it cannot be used; None if it can.
    """

    name: str
    description: str = ""
    unavailable: Unavailable | None = None


@dataclass(frozen=True, slots=True)
class ToolchainOnDevice:
    """Whether a toolchain can be used here for a kind of device.

    Attributes:
        toolchain: Its name.
        kind: The kind of device.
        availability: Its version, or why it cannot be used.
    """

    toolchain: str
    kind: str
    availability: Available | Unavailable


def devices_here(host: Host) -> tuple[DeviceStatus, ...]:
    """Return the devices of this machine, by name.

    Args:
        host: This machine.
    """
    cores = f"{host.cores} core{'' if host.cores == 1 else 's'}"
    cpu = DeviceStatus("cpu:0", f"{host.cpu_model}, {cores}; several devices divide them")
    gpus = gpus_here()
    if gpus.unavailable is not None:
        return cpu, DeviceStatus(DeviceType.CUDA.kind, unavailable=gpus.unavailable)
    return cpu, *(DeviceStatus(f"cuda:{number}", str(facts)) for number, facts in enumerate(gpus.facts))


def toolchains_on_devices() -> tuple[ToolchainOnDevice, ...]:
    """Return the state of each registered toolchain on each kind of device."""
    names = {DeviceType.CPU.kind: cpu_toolchains(), DeviceType.CUDA.kind: tuple(TOOLCHAINS)}
    return tuple(
        ToolchainOnDevice(name, kind, availability_on(name, kind)) for kind in KINDS for name in names[kind]
    )
