"""Reading the files of an artifact, from a folder or a zip, trusting none of it."""

from __future__ import annotations

import hashlib
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np

from intarsia.runtime.artifact_format import MANIFEST
from intarsia.runtime.artifact_writer import FileEntry
from intarsia.runtime.kernel import Array
from intarsia.support.errors import ArtifactError

_PIECE: Final = 1 << 24
_NO_ARTIFACT: Final = "expected a folder or zip that Executable.save wrote"


@dataclass(frozen=True, slots=True)
class ArtifactReader:
    """The files of an artifact by name.

    Attributes:
        path: Where the artifact is.
        names: Files that are there; None for a folder, where each is looked for when it is read.
        read_file: All bytes of a file that is there, memory-mapped if it is in a folder.
    """

    path: Path
    names: frozenset[str] | None
    read_file: Callable[[str], Array]

    def read(self, name: str) -> Array:
        """All bytes of a file.

        Raises:
            ArtifactError: It is missing, unreadable, or its name leads out of the artifact.
        """
        check_name(self.path, name)
        if self.names is not None and name not in self.names:
            raise ArtifactError(f"{self.path} is damaged: {name} is missing")
        try:
            return self.read_file(name)
        except (
            OSError,
            zipfile.BadZipFile,
            zlib.error,
            RuntimeError,
            NotImplementedError,
            EOFError,
        ) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ArtifactError(f"{self.path} is damaged: cannot read {name}: {reason}") from error

    def read_all(self, files: Mapping[str, FileEntry]) -> dict[str, Array]:
        """The listed files, after all names are found safe and all sizes and digests right.

        Raises:
            ArtifactError: One of them is not what the list says.
        """
        for name in files:
            check_name(self.path, name)
        return {name: self._verified(name, entry) for name, entry in files.items()}

    def _verified(self, name: str, entry: FileEntry) -> Array:
        data = self.read(name)
        if data.size != entry.size:
            raise ArtifactError(
                f"{self.path} is damaged: {name} has {data.size} bytes, expected {entry.size}"
            )
        state = hashlib.sha256()
        for start in range(0, data.size, _PIECE):
            state.update(data[start : start + _PIECE].data)
        found = state.hexdigest()
        if found != entry.sha256:
            raise ArtifactError(
                f"{self.path} is damaged: the SHA-256 of {name} is {found}, expected {entry.sha256}"
            )
        return data


def open_artifact(path: Path) -> ArtifactReader:
    """A reader of the artifact at `path`.

    Raises:
        ArtifactError: There is nothing, or no artifact, or one with unsafe names.
    """
    if path.is_dir():
        if not (path / MANIFEST).is_file():
            raise ArtifactError(f"{path} is no artifact: the folder has no {MANIFEST}", help=_NO_ARTIFACT)
        return ArtifactReader(path, None, lambda name: _mapped(path, name))
    if not path.exists():
        raise ArtifactError(f"{path} does not exist", help=_NO_ARTIFACT)
    try:
        with zipfile.ZipFile(path) as archive:
            names = _checked_members(path, archive.infolist())
    except (OSError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ArtifactError(f"{path} is no artifact: {reason}", help=_NO_ARTIFACT) from error
    if MANIFEST not in names:
        raise ArtifactError(f"{path} is no artifact: the zip has no {MANIFEST}", help=_NO_ARTIFACT)
    return ArtifactReader(path, names, lambda name: _extracted(path, name))


def check_name(path: Path, name: str) -> None:
    """Refuse a file name that leads out of the artifact.

    Raises:
        ArtifactError: It is absolute, has "..", or is not written as a plain relative path.
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\\" in name or ":" in name or "\0" in name:
        raise ArtifactError(f"{path} is unsafe: it refers to {name!r}, expected a plain name inside it")


def _mapped(path: Path, name: str) -> Array:
    for inside in (PurePosixPath(name), *PurePosixPath(name).parents[:-1]):
        if (path / inside).is_symlink():
            raise ArtifactError(f"{path} is unsafe: {inside} is a link")
    file = path / name
    if not stat.S_ISREG(file.stat().st_mode):
        raise ArtifactError(f"{path} is damaged: {name} is not a file")
    if file.stat().st_size == 0:
        return np.empty(0, np.uint8)
    return np.memmap(file, np.uint8, mode="c").view(np.ndarray)  # "c": nothing is ever written back


def _extracted(path: Path, name: str) -> Array:
    with zipfile.ZipFile(path) as archive, archive.open(name) as stream:
        data = np.empty(archive.getinfo(name).file_size, np.uint8)
        view, position = data.data, 0
        while position < data.size:
            got = stream.readinto(view[position : position + _PIECE])  # type: ignore[attr-defined]  # ZipExtFile has it
            if not got:
                raise EOFError("the file is cut off")
            position += got
        stream.read()  # the checksum is compared at the end of the stream
    return data


def _checked_members(path: Path, members: list[zipfile.ZipInfo]) -> frozenset[str]:
    names: set[str] = set()
    for member in members:
        check_name(path, member.filename)
        if stat.S_ISLNK(member.external_attr >> 16):
            raise ArtifactError(f"{path} is unsafe: {member.filename} is a link")
        if member.compress_type != zipfile.ZIP_STORED:
            raise ArtifactError(f"{path} is damaged: {member.filename} is compressed, expected stored")
        if member.filename in names:
            raise ArtifactError(f"{path} is unsafe: it has {member.filename} twice")
        names.add(member.filename)
    return frozenset(names)
