"""The toolchains that are registered, which of them work here, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import MissingToolchainError, UsageError
from intarsia.target import Target
from intarsia.target.device_type import DeviceType
from intarsia.toolchain.package import exception_text, missing
from intarsia.toolchain.protocol import Available, RunsOnDevices, Toolchain, Unavailable

_ON_THE_HOST = (DeviceType.CPU.kind, DeviceType.MOCK.kind)


@dataclass(frozen=True, slots=True)
class ToolchainStatus:
    """A registered toolchain and whether it works on this machine.

    Attributes:
        name: The name it is registered under.
        availability: Its version, or the reason why it is not usable.
    """

    name: str
    availability: Available | Unavailable

    @property
    def is_usable(self) -> bool:
        """Whether it works here."""
        return isinstance(self.availability, Available)


def toolchain(name: str) -> Toolchain:
    """The toolchain of that name, ready for use.

    Raises:
        MissingToolchainError: It is unknown, not installed or broken; the message says which.
    """
    if name not in TOOLCHAINS:
        raise _unknown(name)
    usable = _usable(name)
    if isinstance(usable, Unavailable):
        raise missing(name, usable)
    return usable[0]


def toolchain_for(target: Target) -> Toolchain:
    """The toolchain of a target, ready for use on the target's kind of device.

    Raises:
        MissingToolchainError: It is unknown, not installed or broken, or has no kernels for such devices.
        UsageError: The target names none.
    """
    name = target.toolchain
    if name is None:
        raise UsageError(f'the target "{target}" names no toolchain')
    instance = toolchain(name)
    on_device = availability_on(name, target.kind)
    if isinstance(on_device, Unavailable):
        raise missing(name, on_device, target.kind)
    return instance


def availability_on(name: str, kind: str) -> Available | Unavailable:
    """Whether a registered toolchain can be used here for devices of a kind; never raises."""
    usable = _usable(name)
    if isinstance(usable, Unavailable):
        return usable
    if kind in _ON_THE_HOST and not _is_for_gpus_only(name):
        return usable[1]
    if not isinstance(usable[0], RunsOnDevices):
        return Unavailable(f"{name} makes kernels for the CPU only")
    try:
        return usable[0].availability_on(kind)
    except Exception as error:  # foreign code may fail in any way
        return Unavailable(f"trying it failed with {exception_text(error)}")


def installed_toolchains() -> tuple[ToolchainStatus, ...]:
    """Every registered toolchain by name, the broken ones with the reason; never raises."""
    found = ((name, _usable(name)) for name in TOOLCHAINS)
    return tuple(
        ToolchainStatus(name, state if isinstance(state, Unavailable) else state[1]) for name, state in found
    )


def usable_toolchains() -> tuple[Toolchain, ...]:
    """The toolchains that work here, by name."""
    found = map(_usable, TOOLCHAINS)
    return tuple(state[0] for state in found if not isinstance(state, Unavailable))


def targets() -> tuple[Target, ...]:
    """One target of the CPU without options for each toolchain that works here."""
    names = cpu_toolchains()
    return tuple(Target.for_toolchain(usable.name) for usable in usable_toolchains() if usable.name in names)


def cpu_toolchains() -> tuple[str, ...]:
    """Names of all registered toolchains but those with kernels for GPUs only, the broken ones as well."""
    return tuple(name for name in TOOLCHAINS if not _is_for_gpus_only(name))


def _is_for_gpus_only(name: str) -> bool:
    try:
        return bool(getattr(TOOLCHAINS[name], "is_for_gpus_only", False))
    except Exception:  # foreign code: an entry point may fail in any way
        return False


def _usable(name: str) -> tuple[Toolchain, Available] | Unavailable:
    """A toolchain with its version, or why it cannot be used."""
    try:
        instance = cast("Toolchain", TOOLCHAINS[name]())
        availability = instance.availability()
    except Exception as error:  # foreign code: an entry point may fail in any way
        return Unavailable(f"loading it failed with {exception_text(error)}")
    return (instance, availability) if isinstance(availability, Available) else availability


def _unknown(name: str) -> MissingToolchainError:
    try:
        TOOLCHAINS[name]
    except UsageError as error:
        return MissingToolchainError(error.problem, help=error.help)
    raise AssertionError(f"{name!r} was registered meanwhile")
