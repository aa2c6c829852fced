"""Store the large constants of many workloads, each written once."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from intarsia.measure.arrays.array_files import read_arrays, write_arrays
from intarsia.support.files import write_atomically

Array = npt.NDArray[Any]

LARGE: Final = 1 << 16
"""Size in bytes from which a constant has files of its own."""

_NAME: Final = "constant"


@dataclass(eq=False)
class ConstantStore:
    """A folder of constants, identified by object identity: parts of one program share its arrays.

    Attributes:
        path: Path of the folder.
    """

    path: Path
    _folders: dict[int, tuple[weakref.ref[Array], Path]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def put(self, array: Array) -> Path:
        """Return the folder of an array, and write the array if it is new.

        Raises:
            OutputError: It cannot be written.
        """
        entry = self._folders.get(id(array))
        if entry is not None and entry[0]() is array:
            return entry[1]
        # Never the number of entries: a new array with the identity of a dead one replaces its entry, so that
        # number would be given twice, and the second array would overwrite the first one's files.
        folder = self.path / str(next(self._numbers))
        with write_atomically(folder) as temporary:
            temporary.mkdir()
            write_arrays(temporary, _NAME, {_NAME: array})
        self._folders[id(array)] = (weakref.ref(array), folder)
        return folder


def large_constants(constants: Mapping[str, Array]) -> dict[str, Array]:
    """Return the constants that are large enough for files of their own."""
    return {name: array for name, array in constants.items() if array.nbytes >= LARGE}


def stored_constant(folder: Path) -> Array:
    """Map a constant of a store into memory."""
    return read_arrays(folder, _NAME)[_NAME]
