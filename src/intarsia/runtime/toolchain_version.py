"""Which version of a toolchain is here."""

from __future__ import annotations

from intarsia.runtime.availability import Available, Unavailable
from intarsia.runtime.kernel import TOOLCHAINS, CompilesApart, KernelLoader
from intarsia.support.errors import MissingToolchainError


def usable_loader(toolchain: str) -> tuple[KernelLoader, str]:
    """The loader of a toolchain's kernels, and the toolchain's version.

    Raises:
        MissingToolchainError: It is unknown, not installed or broken here; the help says how to install it.
    """
    if toolchain not in TOOLCHAINS:
        known = ", ".join(TOOLCHAINS) or "none"
        raise MissingToolchainError(f'there is no toolchain "{toolchain}" here', help=f"known: {known}")
    try:
        loader = TOOLCHAINS[toolchain]()
        found = _found(loader)
    except ImportError as error:
        found = Unavailable(str(error))
    if isinstance(found, Unavailable):
        raise MissingToolchainError(
            f'the toolchain "{toolchain}" cannot be used here: {found.reason}',
            help=found.help or f"pip install 'intarsia[{toolchain}]'",
        )
    return loader, found.version


def installed_version(toolchain: str) -> str:
    """The version of a toolchain, or the empty string if it cannot be told."""
    try:
        loader = TOOLCHAINS[toolchain]() if toolchain in TOOLCHAINS else None
    except ImportError:
        return ""
    found = None if loader is None else _found(loader)
    return found.version if isinstance(found, Available) else ""


def _found(loader: KernelLoader) -> Available | Unavailable:
    return loader.loading_availability() if isinstance(loader, CompilesApart) else loader.availability()
