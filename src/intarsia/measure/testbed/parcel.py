"""A workload on its way to the processes that measure candidates of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.files import write_atomically

Bytes = npt.NDArray[np.uint8]


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


@dataclass(frozen=True, slots=True, eq=False)
class PackedFolder:
    """For other machines: the files themselves.

    Attributes:
        name: The folder's name, which has the workload's digest in it.
        files: Names and contents; arrays of bytes, because pickle can send these without a copy.
    """

    name: str
    files: tuple[tuple[str, Bytes], ...]

    @classmethod
    def pack(cls, folder: WorkloadFolder) -> Self:
        """Read the files of a workload; what lies in sub-folders are notes of those that measure it."""
        paths = sorted(path for path in folder.path.iterdir() if path.is_file())
        return cls(folder.path.name, tuple((path.name, np.fromfile(path, np.uint8)) for path in paths))

    def open(self, parent: Path) -> WorkloadFolder:
        """See Parcel.open; a folder of this name that is there already is taken.

        Of two threads at a time both write, and one of two equal folders stays: callers that care take turns.
        """
        folder = WorkloadFolder(parent / self.name)
        if folder.path.exists():
            return folder
        with write_atomically(folder.path) as temporary:
            temporary.mkdir()
            for name, content in self.files:
                _write(temporary / name, content)
        return folder


def _write(path: Path, content: npt.NDArray[Any]) -> None:
    with path.open("wb") as file:
        file.write(content.data)
