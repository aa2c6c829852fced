"""The toolchains that are registered, which of them work here, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import MissingToolchainError, UsageError
from intarsia.target import Target
from intarsia.toolchain.package import exception_text, missing
from intarsia.toolchain.protocol import Available, Toolchain, Unavailable


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
    """One target without options for each toolchain that works here."""
    return tuple(Target.for_toolchain(usable.name) for usable in usable_toolchains())


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
