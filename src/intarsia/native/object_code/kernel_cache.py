"""Object code kept on disk, so that no kernel is generated twice."""

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
from typing import Final

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
_ABANDONED_SECONDS: Final = 3600.0


@dataclass(frozen=True)
class CachedKernel:
    """What is kept of a kernel.

    Attributes:
        object_code: The relocatable file.
        scratch_bytes: Scratch memory that it needs in each thread.
        facts: What else is known of it, as its maker writes and reads it.
    """

    object_code: bytes
    scratch_bytes: int = 0
    facts: str = ""


def kernel_key(source: str, isa: Isa, options: CodegenOptions = DEFAULT_OPTIONS) -> str:
    """The key of a kernel: hexadecimal, other for other code.

    Args:
        source: LLVM IR, or a digest of what our generator makes it from: a loop function, or a computation
            whose loops it decides about too.
        isa: What it is compiled for.
        options: How it is compiled.
    """
    return digest_text([str(_FORMAT), _generator(), str(isa), str(options), source])


class KernelCache:
    """A folder with kernels by key; several processes may use it at once.

    Entries are written whole or not at all. What is damaged is removed and counts as absent. When the entries
    need more than the limit, those that were not used for longest are removed.

    Args:
        folder: Where they are; it is made when the first entry is written.
        limit: Bytes on disk.
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._unseen = limit  # bytes written since the folder was last looked through: at first, unknown
        self._has_warned = False

    def get(self, key: str) -> CachedKernel | None:
        """The entry of a key, None if there is none."""
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
        """Write an entry, and remove old ones if there are too many bytes now.

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
        self._unseen += len(content)
        if self._unseen > self.limit // 16:  # other processes write too
            self._unseen = 0
            self._shrink()

    def get_or_build(self, key: str, build: Callable[[], CachedKernel]) -> CachedKernel:
        """The entry of a key; if there is none it is built and written.

        That it cannot be written is a warning, once: the kernel is there all the same.
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
        """Remove the entries that were not used for longest, and what killed processes have left behind."""
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
        """Time of last use, bytes and path of each."""
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
    """One line of JSON with what must be right, then the object code."""
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
def _generator() -> str:
    """What makes kernels: our version and sources, and LLVM."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        compiler = version("llvmlite")
    except PackageNotFoundError:
        compiler = ""
    return digest_text([VERSION, compiler, generator_digest()])
