"""A workload on its way to the processes that measure candidates of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol, Self

import numpy as np
import numpy.typing as npt

from intarsia.measure.workload_folder import FACTS_FILE, WorkloadFolder
from intarsia.support.digest import digest_bytes
from intarsia.support.files import write_atomically

Bytes = npt.NDArray[np.uint8]

_CONSTANTS: Final = "constants"
"""Name of the folder of all constants that have arrived in a session."""


class Parcel(Protocol):
    """The part of a task from which its process opens the workload."""

    def open(self, parent: Path) -> WorkloadFolder:
        """The workload's folder, seen from this process; made below `parent` if it has to be.

        Raises:
            OutputError: The folder cannot be written.
        """


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """For processes that see the same files: nothing travels.

    Attributes:
        path: The workload's folder.
    """

    path: Path

    def open(self, parent: Path) -> WorkloadFolder:  # noqa: ARG002  # nothing has to be made
        """See Parcel.open."""
        return WorkloadFolder(self.path)


class FolderMissingError(Exception):
    """A process does not have a folder that was only named to it."""


@dataclass(frozen=True, slots=True)
class ArrivedFolder:
    """For processes to which the files have been brought before: nothing travels but the name.

    Attributes:
        name: The folder's name, which has the workload's digest in it.
    """

    name: str

    def open(self, parent: Path) -> WorkloadFolder:
        """See Parcel.open.

        Raises:
            FolderMissingError: It is not there: the process has begun anew.
        """
        folder = WorkloadFolder(parent / self.name)
        if not folder.path.exists():
            raise FolderMissingError(self.name)
        return folder


@dataclass(frozen=True, slots=True, eq=False)
class PackedConstant:
    """A large constant on its way, which workloads share: parts of a model have its weights.

    Attributes:
        digest: Digest of the content.
        files: Names and contents.
    """

    digest: str
    files: tuple[tuple[str, Bytes], ...]

    @classmethod
    def pack(cls, folder: Path) -> Self:
        """Read a constant of a store."""
        files = _read_files(folder)
        parts = (part for name, content in files for part in (name.encode(), content.data))
        return cls(digest_bytes(*parts).hex(), files)

    def open(self, parent: Path) -> None:
        """Write the constant below a folder, unless it is there.

        Raises:
            OutputError: It cannot be written.
        """
        _write_files(parent / self.digest, self.files)


@dataclass(frozen=True, slots=True, eq=False)
class PackedFolder:
    """For other machines: the files themselves.

    Attributes:
        name: The folder's name, which has the workload's digest in it.
        files: Names and contents; arrays of bytes, because pickle can send these without a copy. The facts
            name large constants by their digests.
        constants: Large constants; they may travel apart.
    """

    name: str
    files: tuple[tuple[str, Bytes], ...]
    constants: tuple[PackedConstant, ...] = ()

    @classmethod
    def pack(
        cls,
        folder: WorkloadFolder,
        pack_constant: Callable[[Path], PackedConstant] = PackedConstant.pack,
    ) -> Self:
        """Read the files of a workload; what lies in sub-folders are notes of those that measure it.

        Args:
            folder: Complete folder of the workload.
            pack_constant: Function that reads a constant, or returns one that was read before.
        """
        constants = {name: pack_constant(path) for name, path in folder.stored_constants().items()}
        digests = {name: constant.digest for name, constant in constants.items()}
        files = tuple(
            (name, _with_constants(content, digests) if name == FACTS_FILE else content)
            for name, content in _read_files(folder.path)
        )
        distinct = {constant.digest: constant for constant in constants.values()}
        return cls(folder.path.name, files, tuple(distinct.values()))

    def open(self, parent: Path) -> WorkloadFolder:
        """See Parcel.open; a folder or constant of this name that is there already is taken.

        Of two threads at a time both write, and one of two equal folders stays: callers that care take turns.
        """
        folder = WorkloadFolder(parent / self.name)
        if folder.path.exists():
            return folder
        store = parent / _CONSTANTS
        for constant in self.constants:
            store.mkdir(exist_ok=True)
            constant.open(store)
        files = tuple(
            (name, _with_places(content, store) if name == FACTS_FILE else content)
            for name, content in self.files
        )
        _write_files(folder.path, files)
        return folder


def join_parcel(parts: Parcel | Sequence[PackedFolder | PackedConstant]) -> Parcel:
    """Return a parcel of which the constants have travelled apart, behind the folder."""
    if not isinstance(parts, Sequence):
        return parts
    folder, *constants = parts
    assert isinstance(folder, PackedFolder)
    apart = tuple(item for item in constants if isinstance(item, PackedConstant))
    return replace(folder, constants=(*folder.constants, *apart))


def _with_constants(content: Bytes, constants: Mapping[str, str]) -> Bytes:
    """Return the file of facts with other values for the constants."""
    facts = {**json.loads(content.tobytes()), "constants": dict(constants)}
    return np.frombuffer(json.dumps(facts).encode(), np.uint8)


def _with_places(content: Bytes, store: Path) -> Bytes:
    """Return the file of facts with the folders of constants in place of their digests."""
    digests: dict[str, str] = json.loads(content.tobytes())["constants"]
    return _with_constants(content, {name: str(store / digest) for name, digest in digests.items()})


def _read_files(folder: Path) -> tuple[tuple[str, Bytes], ...]:
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    return tuple((path.name, np.fromfile(path, np.uint8)) for path in paths)


def _write_files(folder: Path, files: Sequence[tuple[str, Bytes]]) -> None:
    """Write a new folder at once; one that is there already stays."""
    if folder.exists():
        return
    with write_atomically(folder) as temporary:
        temporary.mkdir()
        for name, content in files:
            _write(temporary / name, content)


def _write(path: Path, content: npt.NDArray[Any]) -> None:
    with path.open("wb") as file:
        file.write(content.data)
