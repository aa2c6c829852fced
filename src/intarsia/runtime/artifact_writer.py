"""Write the files of an artifact into a folder or a zip, and record the digest of each."""

from __future__ import annotations

import hashlib
import struct
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from intarsia.runtime.artifact_format import MANIFEST, ArtifactFormat
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.errors import OutputError
from intarsia.support.files import write_atomically

_LARGE: Final = 1 << 20
"""Size in bytes from which data are digested in another thread."""
_ZIP_START: Final = b"PK\x03\x04"
_NO_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can express, for every member: equal contents give equal files."""
_HEADER_BYTES: Final = 30 + 20
"""Bytes of a member's local header without its name and padding: the fixed part, and sizes of 64 bits."""
_PADDING: Final = struct.Struct("<HHH")
_PADDING_KIND: Final = 0xD935
"""Identifier of the extra field by which Android's zipalign aligns members: the alignment, then zeros."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of an artifact: size in bytes and hexadecimal SHA-256."""

    size: int
    sha256: str


class DigestingStream:
    """Write bytes to a file and digest them, large pieces in another thread at the same time."""

    def __init__(self, stream: IO[bytes], thread: Executor) -> None:
        self._stream = stream
        self._thread = thread
        self._state = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes | memoryview, /) -> None:
        """Write and digest the bytes."""
        if len(data) < _LARGE:
            self._state.update(data)
            self._stream.write(data)
        else:
            # hashlib and write both release the GIL, so that digesting costs no time beside a slow disk. The
            # result is awaited because digests depend on the order of the pieces.
            digested = self._thread.submit(self._state.update, data)
            try:
                self._stream.write(data)
            finally:
                digested.result()
        self._size += len(data)

    def entry(self) -> FileEntry:
        """Return the size and digest of all bytes written so far."""
        return FileEntry(self._size, self._state.hexdigest())


class ArtifactWriter:
    """Creates files by name; `files` lists those that are complete."""

    def __init__(
        self, open_file: Callable[[str], AbstractContextManager[IO[bytes]]], thread: Executor
    ) -> None:
        self._open_file = open_file
        self._thread = thread
        self.files: dict[str, FileEntry] = {}

    @contextmanager
    def file(self, name: str) -> Iterator[DigestingStream]:
        """Open a new file; it is listed when the block ends."""
        with self._open_file(name) as stream:
            digesting = DigestingStream(stream, self._thread)
            yield digesting
        self.files[name] = digesting.entry()

    def add(self, name: str, data: bytes) -> None:
        """Write a new file with this content."""
        with self.file(name) as stream:
            stream.write(data)


@contextmanager
def artifact_writer(path: Path, form: ArtifactFormat) -> Iterator[ArtifactWriter]:
    """Open a writer for a new artifact, which appears at `path` when the block ends without an exception.

    Raises:
        OutputError: The file system refused, or something that is no artifact is in the way.
    """
    _refuse_to_replace(path, form)
    with write_atomically(path) as temporary, ThreadPoolExecutor(1) as thread:
        if form is ArtifactFormat.DIRECTORY:
            (temporary / "kernels").mkdir(parents=True)
            yield ArtifactWriter(lambda name: (temporary / name).open("wb"), thread)
        else:
            with (
                temporary.open("w+b") as stream,
                zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive,
            ):
                yield ArtifactWriter(
                    lambda name: archive.open(_member(name, stream.tell()), "w", force_zip64=True), thread
                )


def _member(name: str, start: int) -> zipfile.ZipInfo:
    """Return a member with a header at `start` and padding that aligns its content for memory-mapping."""
    info = zipfile.ZipInfo(name, _NO_TIME)
    before = start + _HEADER_BYTES + len(name.encode()) + _PADDING.size
    missing = -before % ALIGNMENT
    info.extra = _PADDING.pack(_PADDING_KIND, missing + 2, ALIGNMENT) + b"\0" * missing
    return info


def may_be_artifact(path: Path) -> bool:
    """Return whether a file is an artifact, perhaps a damaged one, or empty: replacing it loses nothing."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_ZIP_START))
        with zipfile.ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return start in (b"", _ZIP_START)
    except OSError:
        return False


def _refuse_to_replace(path: Path, form: ArtifactFormat) -> None:
    if form is ArtifactFormat.ZIP and path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder", help="give the name of a new file")
    if form is ArtifactFormat.ZIP and path.is_file() and not may_be_artifact(path):
        raise OutputError(
            f"cannot write {path}: there is a file that is no artifact",
            help="give the name of a new file, or remove this one",
        )
    if form is ArtifactFormat.DIRECTORY and path.exists():
        if not path.is_dir():
            raise OutputError(f"cannot write {path}: it is a file", help="give the name of a new folder")
        if any(path.iterdir()) and not (path / MANIFEST).is_file():
            raise OutputError(
                f"cannot write {path}: the folder has other files",
                help="give the name of a new or empty folder",
            )
