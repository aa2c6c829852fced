"""Writing the files of an artifact, into a folder or a zip, noting the digest of each."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from intarsia.runtime.artifact_format import MANIFEST, ArtifactFormat
from intarsia.support.errors import OutputError
from intarsia.support.files import written_whole

_ZIP_START: Final = b"PK\x03\x04"
_NO_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip can express: equal contents give equal files."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of an artifact: size in bytes and hexadecimal SHA-256."""

    size: int
    sha256: str


class DigestingStream:
    """Passes bytes on to a file and digests them on the way."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._state = hashlib.sha256()
        self._size = 0

    def write(self, data: bytes | memoryview, /) -> None:
        """Write and digest."""
        self._stream.write(data)
        self._state.update(data)
        self._size += len(data)

    def entry(self) -> FileEntry:
        """Size and digest of what was written."""
        return FileEntry(self._size, self._state.hexdigest())


class ArtifactWriter:
    """Creates files by name; `files` lists those that are complete."""

    def __init__(self, open_file: Callable[[str], AbstractContextManager[IO[bytes]]]) -> None:
        self._open_file = open_file
        self.files: dict[str, FileEntry] = {}

    @contextmanager
    def file(self, name: str) -> Iterator[DigestingStream]:
        """A new file; it is listed when the block ends."""
        with self._open_file(name) as stream:
            digesting = DigestingStream(stream)
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
    with written_whole(path) as temporary:
        if form is ArtifactFormat.DIRECTORY:
            (temporary / "kernels").mkdir(parents=True)
            yield ArtifactWriter(lambda name: (temporary / name).open("wb"))
        else:
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
                yield ArtifactWriter(
                    lambda name: archive.open(zipfile.ZipInfo(name, _NO_TIME), "w", force_zip64=True)
                )


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
