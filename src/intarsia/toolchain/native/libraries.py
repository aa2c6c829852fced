"""Libraries that native's kernels call by address (seed collage_rfc, appendix B).

A library is a package of an optional extra and is imported when a kernel calls it. It computes on the thread
that calls it: native's own pool divides the work, so that a region has one thread policy. The wheel of
OpenBLAS exports its symbols with a prefix, so that no other OpenBLAS in the process, such as NumPy's, is set
to one thread.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Final

from intarsia.native.object_code.allowed_symbols import LIBRARY_SYMBOLS, OPENBLAS
from intarsia.runtime.availability import Unavailable
from intarsia.support.errors import ArtifactError
from intarsia.toolchain.package import package_availability

_PACKAGE: Final = "scipy_openblas32"
_DISTRIBUTION: Final = "scipy-openblas32"
_INSTALL: Final = "pip install 'intarsia[openblas]'"
_PREFIX: Final = "scipy_"
_SET_THREADS: Final = "openblas_set_num_threads"
_NONE: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class LoadedLibrary:
    """A library in this process.

    Attributes:
        symbols: Addresses of the functions that kernels call, by the names that the kernels use.
        handle: The library, which keeps it loaded.
    """

    symbols: Mapping[str, int]
    handle: ctypes.CDLL


def library_symbols(name: str) -> Mapping[str, int]:
    """Return the addresses of the functions of a library; none for the name "".

    Raises:
        ArtifactError: There is no such library, or it is not installed.
    """
    if not name:
        return _NONE
    library = _loaded(name)
    if isinstance(library, Unavailable):
        raise ArtifactError(
            f"these kernels call the library {name}, which does not work here: {library.reason}",
            help=library.help,
        )
    return library.symbols


def library_versions() -> tuple[tuple[str, str], ...]:
    """Return names and versions of the libraries that are installed, without loading them."""
    try:
        return ((OPENBLAS, version(_DISTRIBUTION)),)
    except PackageNotFoundError:
        return ()


def library_trouble(name: str) -> Unavailable | None:
    """Return why a library does not work here; None if it does."""
    library = _loaded(name)
    return library if isinstance(library, Unavailable) else None


@functools.cache
def _loaded(name: str) -> LoadedLibrary | Unavailable:
    if name != OPENBLAS:
        return Unavailable(f"native calls no library {name!r}")
    return _openblas()


def _openblas() -> LoadedLibrary | Unavailable:
    """OpenBLAS out of its wheel, for calls that use the calling thread only."""
    availability = package_availability(_PACKAGE, _INSTALL)
    if isinstance(availability, Unavailable):
        return availability
    package = import_module(_PACKAGE)
    try:
        handle = ctypes.CDLL(str(Path(package.get_lib_dir()) / package.get_library(fullname=True)))
        symbols = {name: _address(handle, _PREFIX + name) for name in LIBRARY_SYMBOLS[OPENBLAS]}
        getattr(handle, _PREFIX + _SET_THREADS)(1)
    except (OSError, AttributeError) as error:
        return Unavailable(f"{_PACKAGE} does not load: {error}", help=f"{_INSTALL} --force-reinstall")
    return LoadedLibrary(MappingProxyType(symbols), handle)


def _address(handle: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(handle, name), ctypes.c_void_p).value
    assert address is not None, "a symbol that was found has an address"
    return address
