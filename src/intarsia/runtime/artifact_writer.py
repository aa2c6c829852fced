"""Writing the files of an artifact, into a folder or a zip, noting the digest of each."""

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
"""Bytes from which it pays to have another thread digest them."""
_ZIP_START: Final = b"PK\x03\x04"
_NO_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip can express: equal contents give equal files."""
_HEADER_BYTES: Final = 30 + 20
"""Of a member, besides its name and what stands behind that: the fixed part, and sizes of 64 bits."""
_PADDING: Final = struct.Struct("<HHH")
_PADDING_KIND: Final = 0xD935
"""What Android's zipalign calls the field with which it aligns members: the alignment, then zeros."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of an artifact: size in bytes and hexadecimal SHA-256."""

    size: int
    sha256: str


class DigestingStream:
    """Passes bytes on to a file and digests them on the way, what is large in another thread meanwhile."""

    def __init__(self, stream: IO[bytes], thread: Executor) -> None:
        self._stream = stream
        self._thread = thread
        self._state = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes | memoryview, /) -> None:
        """Write and digest."""
        if len(data) < _LARGE:
            self._state.update(data)
            self._stream.write(data)
        else:
            digested = self._thread.submit(self._state.update, data)
            try:
                self._stream.write(data)
            finally:
                digested.result()
        self._size += len(data)

    def entry(self) -> FileEntry:
        """Size and digest of what was written."""
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
        """A new file; it is listed when the block ends."""
        with self._open_file(name) as stream:
            digesting = DigestingStream(stream, self._thread)
            yield digesting
        self.files[name] = digesting.entry()

    def add(self, name: str, data: bytes) -> None:
        """A new file with this content."""
        with self.file(name) as stream:
            stream.write(data)


@contextmanager
def artifact_writer(path: Path, form: ArtifactFormat) -> Iterator[ArtifactWriter]:
    """A writer for a new artifact, which appears at `path` when the block ends without an exception.

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
    """A member whose header begins at `start`, and whose content can be mapped with its arrays aligned."""
    info = zipfile.ZipInfo(name, _NO_TIME)
    before = start + _HEADER_BYTES + len(name.encode()) + _PADDING.size
    missing = -before % ALIGNMENT
    info.extra = _PADDING.pack(_PADDING_KIND, missing + 2, ALIGNMENT) + b"\0" * missing
    return info


def may_be_artifact(path: Path) -> bool:
    """Whether a file is an artifact, perhaps a damaged one, or empty: nobody misses it if it is replaced."""
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
