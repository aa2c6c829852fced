"""Large constants of many workloads, each written once."""

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
"""Bytes from which a constant has files of its own."""

_NAME: Final = "constant"


@dataclass(eq=False)
class ConstantStore:
    """A folder of constants, found again by identity: parts of one program share its arrays.

    Attributes:
        path: The folder.
    """

    path: Path
    _places: dict[int, tuple[weakref.ref[Array], Path]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def put(self, array: Array) -> Path:
        """Where an array is, written there if it is not yet.

        Raises:
            OutputError: It cannot be written.
        """
        known = self._places.get(id(array))
        if known is not None and known[0]() is array:
            return known[1]
        # Never the number of places: a new array with the identity of a dead one replaces its entry, so that
        # number would be given twice, and the second array would overwrite the first one's files.
        place = self.path / str(next(self._numbers))
        with write_atomically(place) as temporary:
            temporary.mkdir()
            write_arrays(temporary, _NAME, {_NAME: array})
        self._places[id(array)] = (weakref.ref(array), place)
        return place


def large_constants(constants: Mapping[str, Array]) -> dict[str, Array]:
    """Those that are worth files of their own."""
    return {name: array for name, array in constants.items() if array.nbytes >= LARGE}


def stored_constant(place: Path) -> Array:
    """A constant of a store, by memory map."""
    return read_arrays(place, _NAME)[_NAME]
