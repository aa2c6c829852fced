"""Compiled forms of sources on disk: a program that was built before is loaded, and not compiled again.

The kernels of a new program may be in the user's cache, but simplifying the program, planning its kernels and
packing what was computed of its weights take a second for a large one. All of that depends on the source, on
this version of Intarsia and of what it computes constants with, and on the machine: equal keys mean equal
compiled forms. Weights are part of the key by a fingerprint, which is read several times as fast as a digest.
"""

from __future__ import annotations

import functools
import os
import warnings
import zlib
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import numpy as np

from intarsia.native.machine.isa import Isa
from intarsia.runtime.kernel import Array, KernelSource
from intarsia.support.digest import digest_bytes, digest_text
from intarsia.support.environment import PROGRAM_CACHE
from intarsia.support.errors import OutputError
from intarsia.support.file_cache import FileCache
from intarsia.support.mapped_file import map_file
from intarsia.support.user_folders import cache_folder
from intarsia.target import Target
from intarsia.toolchain.native.version import native_version

_LIMIT_MIB: Final = 1024
"""Size of all compiled forms, by default: some hundred of small programs."""
_LARGEST_SHARE: Final = 4
"""Divisor of the limit for the size of one compiled form."""
_SUFFIX: Final = ".program"
_HEAD: Final = b"intarsia program 1 "
_HEAD_BYTES: Final = 64
"""Bytes before the compiled form, whose constants stand at multiples of so many."""
_WORD: Final = 8
_OTHERS: Final = ("ir", "op", "passes", "transform", "frontend/onnx", "target")
"""Packages that native simplifies programs with, beside its own sources."""
_PACKAGES: Final = ("llvmlite", "ml_dtypes", "numpy", "onnx")
_DOMAINS: Final = frozenset({"", "ai.onnx", "ai.onnx.ml", "intarsia"})
"""Domains of operators that no other package defines."""
_BEYOND_SOURCE: Final = ("libs", "mcpu", "schedules")
"""Options of targets that name what is found elsewhere, such as a library that may be missing."""


class ProgramCache:
    """A folder of compiled forms by key; several processes may use it at once.

    Args:
        folder: Folder of the files; the first write creates it.
        limit: Maximum size of all of them, in bytes.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._files = FileCache(folder, _SUFFIX, limit)

    def get(self, key: str) -> memoryview | None:
        """Return a compiled form, mapped from its file; None if there is none, or it is damaged."""
        path = self._files.path(key)
        try:
            size = path.stat().st_size
            content = map_file(path, 0, size) if size > _HEAD_BYTES else np.zeros(0, np.uint8)
        except (OSError, ValueError):
            return None
        blob = content[_HEAD_BYTES:]
        if content[:_HEAD_BYTES].tobytes() != _head(blob.data):
            self._files.remove(key)
            return None
        self._files.mark_used(key)
        return blob.data

    def put(self, key: str, parts: Sequence[bytes | memoryview]) -> None:
        """Write a compiled form, unless it is empty or too large; that it cannot be written is a warning.

        Args:
            key: Its key.
            parts: Its bytes, in order.
        """
        size = sum(map(len, parts))
        if not 0 < size * _LARGEST_SHARE <= self._files.limit:
            return
        try:
            self._files.write(key, (_head(*parts), *parts))
        except OutputError as error:
            warnings.warn(f"compiled programs are not kept: {error}", RuntimeWarning, stacklevel=2)

    def remove(self, key: str) -> None:
        """Remove a compiled form, such as one that does not load."""
        self._files.remove(key)


def program_cache() -> ProgramCache:
    """Return the user's cache."""
    return ProgramCache(cache_folder(os.environ) / "programs", _limit())


def program_key(source: KernelSource) -> str | None:
    """Return the key of a source's compiled form; None where more than the source decides about that.

    So it is with operators of other packages, whose rules are code that no key covers, with options of
    targets that name other files, with weights that are texts, and where the environment allows no cache.
    """
    target = Target(source.target)
    if not _limit() or any(target.option(name) is not None for name in _BEYOND_SOURCE):
        return None
    if any(array.dtype.hasobject for array in source.weights.values()) or not _is_known(source.model):
        return None
    isa = Isa.host_without_compiler()
    parts = [_version(), str(isa), str(isa.cores), str(isa.machine), source.target, source.pass_settings]
    weights = [f"{name} {_fingerprint(array)}" for name, array in sorted(source.weights.items())]
    return digest_text([*parts, digest_bytes(source.model).hex(), *weights])


def _limit() -> int:
    """Return how many bytes the environment allows."""
    given = os.environ.get(PROGRAM_CACHE, "")
    return (int(given) if given.isdecimal() else _LIMIT_MIB) << 20


def _is_known(model: bytes) -> bool:
    """Return whether a serialised model has operators of known domains only."""
    import onnx

    return {opset.domain for opset in onnx.load_model_from_string(model).opset_import} <= _DOMAINS


def _head(*parts: bytes | memoryview) -> bytes:
    """Return what stands before a compiled form, to find out whether it is whole."""
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return (_HEAD + f"{sum(map(len, parts))} {checksum}".encode()).ljust(_HEAD_BYTES, b"\0")


def _fingerprint(array: Array) -> str:
    """Return element type, shape, checksum, and the sum of all words of eight bytes of an array."""
    elements = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    words = elements[: elements.size // _WORD * _WORD].view(np.uint64)
    return f"{array.dtype} {array.shape} {zlib.crc32(elements.data)} {words.sum(dtype=np.uint64)}"


@functools.cache
def _version() -> str:
    """Return what changes with all that compiles: versions of packages, and sources.

    Of the packages beside native's own the sizes and times of files are taken, as reading a thousand files
    takes longer than loading a program.
    """
    package = Path(__file__).parents[2]
    files = sorted(file for name in _OTHERS for file in (package / name).rglob("*.py"))
    facts = [(file.relative_to(package).as_posix(), file.stat()) for file in files]
    sources = [f"{name} {fact.st_size} {fact.st_mtime_ns}" for name, fact in facts]
    return digest_text([native_version(), *map(_version_of, _PACKAGES), *sources])


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
