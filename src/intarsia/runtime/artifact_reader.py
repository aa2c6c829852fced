"""Read the files of an artifact, from a folder or a zip, without trusting any of them."""

from __future__ import annotations

import hashlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np

from intarsia.runtime.artifact_damage import damaged
from intarsia.runtime.artifact_format import MANIFEST
from intarsia.runtime.artifact_writer import FileEntry
from intarsia.runtime.kernel import Array
from intarsia.support.errors import ArtifactError, UsageError
from intarsia.support.mapped_file import drop_pages, map_file

_PIECE: Final = 1 << 22
"""Bytes that are digested or read at a time."""
_NO_ARTIFACT: Final = "expected a folder or zip that Executable.save wrote"
_MAPPED_BYTES: Final = 1 << 20
"""Size in bytes from which a file is memory-mapped.

Smaller files are read, so later changes do not matter.
"""
_READERS: Final = 2
"""Number of files that are digested at a time: most bytes are in two, constants and compiled code."""
_LOCAL_HEADER: Final = struct.Struct("<4s2xHH16xHH")
"""Local header before a member's content: signature, flags, method, lengths of the name and extra fields."""
_ZIP_START: Final = b"PK\x03\x04"
_IS_ENCRYPTED: Final = 1
_UNREADABLE: Final = (  # what zipfile raises on damaged files, ValueError and OverflowError for wrong offsets
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,  # NotImplementedError is one
    ValueError,  # UnicodeDecodeError is one
    OverflowError,
    MemoryError,
)


def is_artifact_data(data: bytes) -> bool:
    """Whether bytes look like an artifact: a zip file."""
    return data.startswith(_ZIP_START)


def is_artifact(path: Path) -> bool:
    """Whether a path looks like an artifact by its content: a folder, or a zip file.

    Raises:
        UsageError: The file cannot be read.
    """
    if not path.exists():
        return False
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            return is_artifact_data(file.read(len(_ZIP_START)))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read {path}: {reason}") from error


@dataclass(frozen=True, slots=True)
class ArtifactReader:
    """The files of an artifact by name.

    Attributes:
        path: Path of the artifact.
        names: Names of all files; None for a folder, where a file is looked up when it is read.
        read_file: Function that returns all bytes of an existing file; large files are memory-mapped.
    """

    path: Path
    names: frozenset[str] | None
    read_file: Callable[[str, int | None], Array]

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return (self.path / name).exists() if self.names is None else name in self.names

    def read(self, name: str, most_bytes: int | None = None) -> Array:
        """Read all bytes of a file.

        Args:
            name: Name of the file.
            most_bytes: Size above which it is refused before it is read; None for any size.

        Raises:
            ArtifactError: It is missing, unreadable or too large, or its name leads out of the artifact.
        """
        check_name(self.path, name)
        if self.names is not None and name not in self.names:
            raise damaged(self.path, f"{name} is missing")
        try:
            return self.read_file(name, most_bytes)
        except FileNotFoundError as error:
            raise damaged(self.path, f"{name} is missing") from error
        except PermissionError as error:
            raise ArtifactError(
                f"cannot read {name} of {self.path}: permission denied",
                help="ask its owner for the right to read it",
            ) from error
        except _UNREADABLE as error:
            raise damaged(self.path, f"cannot read {name}: {_reason(error)}") from error

    def read_all(self, files: Mapping[str, FileEntry]) -> dict[str, Array]:
        """Read the listed files and check their names, sizes and digests.

        Raises:
            ArtifactError: One of them is not what the list says.
        """
        for name in files:
            check_name(self.path, name)
        if sum(entry.size > _MAPPED_BYTES for entry in files.values()) < _READERS:
            return {name: self._read_verified(name, entry) for name, entry in files.items()}
        with ThreadPoolExecutor(_READERS) as readers:
            return dict(zip(files, readers.map(self._read_verified, files, files.values()), strict=True))

    def _read_verified(self, name: str, entry: FileEntry) -> Array:
        data = self.read(name)
        if data.size != entry.size:
            raise damaged(self.path, f"{name} has {data.size} bytes, expected {entry.size}")
        state = hashlib.sha256()
        for start in range(0, data.size, _PIECE):
            piece = data[start : start + _PIECE]
            state.update(piece.data)
            drop_pages(piece)  # most models never read their weights again, only the packed ones
        digest = state.hexdigest()
        if digest != entry.sha256:
            raise damaged(self.path, f"the SHA-256 of {name} is {digest}, expected {entry.sha256}")
        return data


def open_artifact(path: Path) -> ArtifactReader:
    """Return a reader of the artifact at `path`.

    Raises:
        ArtifactError: There is nothing, or no artifact, or a damaged one, or one with unsafe names.
    """
    try:
        if path.is_dir():
            if not (path / MANIFEST).is_file():
                raise ArtifactError(f"{path} is no artifact: the folder has no {MANIFEST}", help=_NO_ARTIFACT)
            return ArtifactReader(path, None, partial(_read_from_folder, path))
        if not path.exists():
            raise ArtifactError(f"{path} does not exist", help=_NO_ARTIFACT)
        names = _read_zip_members(path)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {_reason(error)}", help=_NO_ARTIFACT) from error
    if MANIFEST not in names:
        raise ArtifactError(f"{path} is no artifact: the zip has no {MANIFEST}", help=_NO_ARTIFACT)
    return ArtifactReader(path, names, partial(_read_from_zip, path))


def check_name(path: Path, name: str) -> None:
    """Refuse a file name that leads out of the artifact.

    Raises:
        ArtifactError: It is absolute, has "..", or is not written as a plain relative path.
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\\" in name or ":" in name or "\0" in name:
        raise ArtifactError(f"{path} is unsafe: it refers to {name!r}, expected a plain name inside it")


def _read_from_folder(path: Path, name: str, most_bytes: int | None) -> Array:
    for inside in (PurePosixPath(name), *PurePosixPath(name).parents[:-1]):
        if (path / inside).is_symlink():
            raise ArtifactError(f"{path} is unsafe: {inside} is a link")
    file = path / name
    if not stat.S_ISREG(file.stat().st_mode):
        raise damaged(path, f"{name} is not a file")
    _refuse_larger(path, name, file.stat().st_size, most_bytes)
    if file.stat().st_size >= _MAPPED_BYTES:
        return map_file(file, 0, file.stat().st_size)
    return np.fromfile(file, np.uint8)


def _refuse_larger(path: Path, name: str, size: int, most_bytes: int | None) -> None:
    if most_bytes is not None and size > most_bytes:
        raise damaged(path, f"{name} has {size} bytes, expected at most {most_bytes}")


def _read_from_zip(path: Path, name: str, most_bytes: int | None) -> Array:
    with zipfile.ZipFile(path) as archive, archive.open(name) as stream:
        info = archive.getinfo(name)
        _content_offset(path, info)
        _refuse_larger(path, name, info.file_size, most_bytes)
        if info.file_size >= _MAPPED_BYTES and name != MANIFEST:  # all others have a digest
            return map_file(path, _content_offset(path, info), info.file_size)
        data = np.empty(info.file_size, np.uint8)
        view, position = data.data, 0
        while position < data.size:
            got = stream.readinto(view[position : position + _PIECE])  # type: ignore[attr-defined]  # ZipExtFile has it
            if not got:
                raise EOFError("the file is cut off")
            position += got
        stream.read()  # the checksum is compared at the end of the stream
    return data


def _content_offset(path: Path, info: zipfile.ZipInfo) -> int:
    """Return the offset in bytes of the content of a stored member."""
    with path.open("rb") as stream:
        stream.seek(info.header_offset)
        signature, flags, method, name, extra = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
        # The local header can contradict the central directory; only members on which both agree are read.
        local_name = stream.read(name)
    if signature != _ZIP_START:
        raise EOFError("its header is wrong")
    if (local_name, method) != (info.filename.encode(), zipfile.ZIP_STORED) or flags & _IS_ENCRYPTED:
        raise EOFError("its header is not what the list of files says")
    return int(info.header_offset + _LOCAL_HEADER.size + name + extra)


def _read_zip_members(path: Path) -> frozenset[str]:
    with path.open("rb") as stream:
        is_zip = stream.read(len(_ZIP_START)) == _ZIP_START
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except OSError:
        raise
    except _UNREADABLE as error:
        if not is_zip:
            raise ArtifactError(
                f"{path} is no artifact: File is not a zip file", help=_NO_ARTIFACT
            ) from error
        if str(error) == "File is not a zip file":
            raise damaged(path, "the file is cut off: it does not end as a zip does") from error
        raise damaged(path, f"the zip's list of its files is wrong: {_reason(error)}") from error
    return _check_members(path, members)


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> frozenset[str]:
    names: set[str] = set()
    total = 0
    whole = path.stat().st_size
    for member in members:
        name = member.filename
        check_name(path, name)
        if stat.S_ISLNK(member.external_attr >> 16):
            raise ArtifactError(f"{path} is unsafe: {name} is a link")
        if member.compress_type != zipfile.ZIP_STORED:
            raise damaged(path, f"{name} is compressed, expected stored")
        if member.flag_bits & _IS_ENCRYPTED:
            raise damaged(path, f"{name} is encrypted, expected stored")
        if member.file_size > whole:
            raise damaged(path, f"{name} claims {member.file_size} bytes, but the whole zip has {whole}")
        if name in names:
            raise ArtifactError(f"{path} is unsafe: it has {name} twice")
        names.add(name)
        total += member.file_size
    # Overlapping members would let a small zip stand for many copies of its bytes.
    if total > whole:
        raise damaged(path, f"its files claim {total} bytes together, but the whole zip has {whole}")
    return frozenset(names)


def _reason(error: BaseException) -> str:
    """Return an exception's message for users."""
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    if str(error).startswith("Bad CRC-32"):
        return "its checksum is wrong"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
