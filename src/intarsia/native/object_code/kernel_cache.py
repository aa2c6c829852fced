"""Cache of object code on disk, so that no kernel is generated twice."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from intarsia.native.generator import generator_digest
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import DEFAULT_OPTIONS, CodegenOptions
from intarsia.support.digest import digest_bytes, digest_text
from intarsia.support.errors import OutputError
from intarsia.support.file_cache import FileCache
from intarsia.support.version import VERSION

SYMBOL: Final = "kernel"
"""Symbol of every kernel in its object code: one name, so that equal loops give equal code."""
DEFAULT_LIMIT: Final = 1 << 29
"""Bytes on disk: about 50,000 kernels."""
_FORMAT: Final = 2
_SUFFIX: Final = ".kernel"


@dataclass(frozen=True)
class CachedKernel:
    """The entry of a kernel in the cache.

    Attributes:
        object_code: Bytes of the relocatable ELF file.
        scratch_bytes: Scratch memory that the kernel needs in each thread, in bytes.
        facts: Other facts on the kernel, in a text format that the caller defines.
    """

    object_code: bytes
    scratch_bytes: int = 0
    facts: str = ""


def kernel_key(source: str, isa: Isa, options: CodegenOptions = DEFAULT_OPTIONS) -> str:
    """Return the hexadecimal key of a kernel; different code has a different key.

    Args:
        source: LLVM IR, or a digest of the input that it is generated from: a loop function, or a computation
            before scheduling.
        isa: Instruction set that the kernel is compiled for.
        options: Options of code generation.
    """
    return digest_text([str(_FORMAT), _generator_version(), str(isa), str(options), source])


class KernelCache:
    """A folder with kernels by key; several processes may use it at once.

    Entries are written whole or not at all. A damaged entry is removed and counts as absent. When the entries
    exceed the limit, the least recently used are removed.

    Args:
        folder: Folder of the entries; the first write creates it.
        limit: Maximum size of all entries, in bytes.
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        self._files = FileCache(folder, _SUFFIX, limit)
        self._has_warned = False

    @property
    def folder(self) -> Path:
        """Folder of the entries."""
        return self._files.folder

    @property
    def limit(self) -> int:
        """Maximum size of all entries, in bytes."""
        return self._files.limit

    def get(self, key: str) -> CachedKernel | None:
        """Return the entry of a key, None if there is none."""
        try:
            content = self._files.path(key).read_bytes()
        except OSError:
            return None
        kernel = _decode(content, key)
        if kernel is None:
            self._files.remove(key)
        else:
            self._files.mark_used(key)
        return kernel

    def put(self, key: str, kernel: CachedKernel) -> None:
        """Write an entry, and remove old ones if the entries exceed the limit.

        Raises:
            OutputError: The file system refused.
        """
        self._files.write(key, (_encode(kernel, key),))

    def get_or_build(self, key: str, build: Callable[[], CachedKernel]) -> CachedKernel:
        """Return the entry of a key; build and write it if there is none.

        A failure to write is only a warning, issued once: the kernel can still be used.
        """
        kernel = self.get(key)
        if kernel is None:
            kernel = build()
            try:
                self.put(key, kernel)
            except OutputError as error:
                if not self._has_warned:
                    warnings.warn(f"kernels are not kept: {error}", RuntimeWarning, stacklevel=2)
                self._has_warned = True
        return kernel


def _encode(kernel: CachedKernel, key: str) -> bytes:
    """Encode an entry: one line of JSON with what `_decode` checks, then the object code."""
    head = {
        "format": _FORMAT,
        "key": key,
        "scratch_bytes": kernel.scratch_bytes,
        "facts": kernel.facts,
        "digest": _digest(kernel),
    }
    return json.dumps(head).encode() + b"\n" + kernel.object_code


def _decode(content: bytes, key: str) -> CachedKernel | None:
    line, _, object_code = content.partition(b"\n")
    try:
        head = json.loads(line)
        if head["format"] != _FORMAT or head["key"] != key or type(head["scratch_bytes"]) is not int:
            return None
        kernel = CachedKernel(object_code, head["scratch_bytes"], head["facts"])
        return kernel if head["digest"] == _digest(kernel) else None
    except (ValueError, KeyError, TypeError):
        return None


def _digest(kernel: CachedKernel) -> str:
    facts = str(kernel.facts).encode()
    return digest_bytes(str(kernel.scratch_bytes).encode(), facts, kernel.object_code).hex()


@functools.cache
def _generator_version() -> str:
    """Digest of the code generator: Intarsia's version and sources, and the version of LLVM."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        compiler = version("llvmlite")
    except PackageNotFoundError:
        compiler = ""
    return digest_text([VERSION, compiler, generator_digest()])
