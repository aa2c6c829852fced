"""Versions of the toolchains on this machine."""

from __future__ import annotations

from intarsia.runtime.availability import Available, Unavailable
from intarsia.runtime.kernel import TOOLCHAINS, CompilesApart, KernelLoader
from intarsia.support.errors import MissingToolchainError


def usable_loader(toolchain: str) -> tuple[KernelLoader, str]:
    """Return the loader of a toolchain's kernels, and the toolchain's version.

    Raises:
        MissingToolchainError: It is unknown, not installed or broken here; the help says how to install it.
    """
    if toolchain not in TOOLCHAINS:
        known = ", ".join(TOOLCHAINS) or "none"
        raise MissingToolchainError(f'there is no toolchain "{toolchain}" here', help=f"known: {known}")
    try:
        loader = TOOLCHAINS[toolchain]()
        availability = _loading_availability(loader)
    except ImportError as error:
        availability = Unavailable(str(error))
    if isinstance(availability, Unavailable):
        raise MissingToolchainError(
            f'the toolchain "{toolchain}" cannot be used here: {availability.reason}',
            help=availability.help or f"pip install 'intarsia[{toolchain}]'",
        )
    return loader, availability.version


def installed_version(toolchain: str) -> str:
    """Return the version of a toolchain, or the empty string if it is unknown."""
    try:
        loader = TOOLCHAINS[toolchain]() if toolchain in TOOLCHAINS else None
    except ImportError:
        return ""
    availability = None if loader is None else _loading_availability(loader)
    return availability.version if isinstance(availability, Available) else ""


def _loading_availability(loader: KernelLoader) -> Available | Unavailable:
    return loader.loading_availability() if isinstance(loader, CompilesApart) else loader.availability()
