"""Whether the Python package behind a toolchain works here, found out by importing it."""

from __future__ import annotations

from importlib import import_module

from intarsia.support.errors import MissingToolchainError
from intarsia.toolchain.protocol import Available, RunsOnDevices, Toolchain, Unavailable


def package_availability(package: str, install: str) -> Available | Unavailable:
    """The version of an importable package, or what its import said; never raises.

    A package that is installed and fails to import is distinguished from one that is missing. The import
    itself is the test: a folder left behind by an uninstallation has metadata or files, and no version.

    Args:
        package: Name to import.
        install: The command that installs it.
    """
    repair = f"repair it: {install} --force-reinstall"
    try:
        module = import_module(package)
    except ModuleNotFoundError as error:
        if error.name == package:
            return Unavailable(f"the package {package} is not installed", help=install)
        return Unavailable(_broken(package, error), help=repair)
    except Exception as error:  # a broken installation may raise anything
        return Unavailable(_broken(package, error), help=repair)
    version = getattr(module, "__version__", None)
    if not isinstance(version, str):
        return Unavailable(
            f"the package {package} is incomplete: it has no version",
            help=repair,
        )
    return Available(version.split("-")[0])


def require(toolchain: Toolchain) -> None:
    """Do nothing if the toolchain is usable here.

    Raises:
        MissingToolchainError: It is not; the message says why and how to install it.
    """
    availability = toolchain.availability()
    if isinstance(availability, Unavailable):
        raise missing(toolchain.name, availability)


def require_on(toolchain: RunsOnDevices, name: str, kind: str) -> None:
    """Do nothing if a toolchain is usable here on devices of a kind.

    Raises:
        MissingToolchainError: It is not; the message says why.
    """
    availability = toolchain.availability_on(kind)
    if isinstance(availability, Unavailable):
        raise missing(name, availability, kind)


def missing(name: str, why: Unavailable, kind: str = "") -> MissingToolchainError:
    """The error for a toolchain that is not usable here, on devices of a kind if one is given."""
    where = f"on {kind} here" if kind else "here"
    return MissingToolchainError(f"toolchain {name!r} is not usable {where}: {why.reason}", help=why.help)


def _broken(package: str, error: Exception) -> str:
    return f"importing {package} failed with {exception_text(error)}"


def exception_text(error: BaseException) -> str:
    """Type and message of an exception in one line."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
