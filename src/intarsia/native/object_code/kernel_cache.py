"""Cache of object code on disk, so that no kernel is generated twice."""

from __future__ import annotations

import functools
import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from intarsia.native.generator import generator_digest
from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import DEFAULT_OPTIONS, CodegenOptions
from intarsia.support.digest import digest_bytes, digest_text
from intarsia.support.errors import OutputError
from intarsia.support.files import output_error, write_atomically
from intarsia.support.version import VERSION

DEFAULT_LIMIT: Final = 1 << 29
"""Bytes on disk: about 50,000 kernels."""
_FORMAT: Final = 2
_SUFFIX: Final = ".kernel"
_KEPT_SHARE: Final = 0.8
"""Share of the limit that a cleanup leaves, so that the next one is not due at once."""
_ABANDONED_SECONDS: Final = 3600.0
"""Age in seconds from which a temporary folder counts as left by a killed process."""


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

    _unseen: ClassVar[dict[Path, int]] = {}
    """Bytes that this process has written to each folder since it last looked through it."""

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._has_warned = False

    def get(self, key: str) -> CachedKernel | None:
        """Return the entry of a key, None if there is none."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        kernel = _decode(content, key)
        try:
            if kernel is None:
                path.unlink()
            else:
                os.utime(path)  # the time of last use
        except OSError:
            pass  # removed by another process, or a folder that we may only read
        return kernel

    def put(self, key: str, kernel: CachedKernel) -> None:
        """Write an entry, and remove old ones if the entries exceed the limit.

        Raises:
            OutputError: The file system refused.
        """
        path, content = self._path(key), _encode(kernel, key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(path.parent, error) from error
        with write_atomically(path) as temporary:
            temporary.write_bytes(content)
        unseen = self._unseen.get(self.folder, self.limit) + len(content)
        is_due = unseen > self.limit // 16  # other processes write too
        self._unseen[self.folder] = 0 if is_due else unseen
        if is_due:
            self._shrink()

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

    def _path(self, key: str) -> Path:
        if not key.isalnum():
            raise ValueError(f"not a key: {key!r}")
        return self.folder / key[:2] / f"{key}{_SUFFIX}"

    def _shrink(self) -> None:
        """Remove the least recently used entries, and temporary folders of killed processes."""
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in entries:
            if total <= self.limit * _KEPT_SHARE:
                return
            path.unlink(missing_ok=True)
            total -= size

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        """Yield time of last use (ns), size (bytes) and path of each entry."""
        for path in self.folder.glob("*/*"):
            try:
                facts = path.stat()
                if path.name.endswith(_SUFFIX) and not path.name.startswith("."):
                    yield facts.st_mtime_ns, facts.st_size, path
                elif path.is_dir() and facts.st_mtime < time.time() - _ABANDONED_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
            except OSError:
                continue  # removed by another process


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
