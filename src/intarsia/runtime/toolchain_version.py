"""Versions of the toolchains on this machine."""

from __future__ import annotations

from typing import Final

from intarsia.runtime.availability import Available, Unavailable
from intarsia.runtime.kernel import TOOLCHAINS, CompilesApart, KernelLoader
from intarsia.support.errors import MissingToolchainError

_PACKAGES: Final = {
    "onnxruntime": "intarsia[onnxruntime]",
    "openvino": "intarsia[openvino]",
    "reference": "intarsia",
    "torch": "intarsia[torch]",
}
"""Packages by toolchains of Intarsia that the wheel intarsia-runtime lacks."""


def usable_loader(toolchain: str) -> tuple[KernelLoader, str]:
    """Return the loader of a toolchain's kernels, and the toolchain's version.

    Raises:
        MissingToolchainError: It is unknown, not installed or broken here; the help says how to install it.
    """
    if toolchain not in TOOLCHAINS:
        names = f"known: {', '.join(TOOLCHAINS) or 'none'}"
        package = _PACKAGES.get(toolchain)
        help_line = names if package is None else f"pip install '{package}'; {names}"
        raise MissingToolchainError(f'there is no toolchain "{toolchain}" here', help=help_line)
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
