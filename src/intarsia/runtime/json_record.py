"""Read untrusted JSON objects, with errors that name the wrong value."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from intarsia.support.errors import ArtifactError

T = TypeVar("T")

MOST_DIMENSIONS: Final = 64
"""Maximum number of dimensions of a NumPy array (version 2)."""
MOST_ELEMENTS: Final = 1 << 58
"""Maximum number of elements: with up to 16 bytes each, their size fits into 63 bits."""


class Record:
    """A JSON object; `where` is its path in the file, for errors.

    Raises:
        ArtifactError: From every method, when the value is missing or of another kind.
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise unexpected(where, value, "an object")
        self._value: dict[str, object] = value
        self._where = where

    def path_to(self, key: str) -> str:
        """Return the path of a value in the file, for errors."""
        return f"{self._where}.{key}"

    def keys(self) -> list[str]:
        """Return the names of all values."""
        return list(self._value)

    def get(self, key: str) -> object:
        """Return a value of any kind."""
        if key not in self._value:
            raise ArtifactError(f'{self._where} has no "{key}"')
        return self._value[key]

    def text(self, key: str) -> str:
        """Return a text."""
        return as_text(self.get(key), self.path_to(key))

    def optional_text(self, key: str) -> str | None:
        """Return a text, or None for null."""
        return None if self.get(key) is None else self.text(key)

    def count(self, key: str) -> int:
        """Return a whole number, 0 or more."""
        return as_count(self.get(key), self.path_to(key))

    def counts(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers, 0 or more."""
        return self.read_list(key, as_count)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return self.read_list(key, as_text)

    def record(self, key: str) -> Record:
        """Return an object."""
        return Record(self.get(key), self.path_to(key))

    def read_list(self, key: str, read: Callable[[object, str], T]) -> tuple[T, ...]:
        """Return a list, with each item converted by a function of the item and its path."""
        values = as_list(self.get(key), self.path_to(key))
        return tuple(read(item, f"{self.path_to(key)}[{index}]") for index, item in enumerate(values))


def as_text(value: object, where: str) -> str:
    """Return the value, which must be a text."""
    if not isinstance(value, str):
        raise unexpected(where, value, "a text")
    return value


def as_count(value: object, where: str) -> int:
    """Return the value, which must be a whole number, 0 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise unexpected(where, value, "a whole number, 0 or more")
    return value


def as_shape(value: object, where: str) -> tuple[int, ...]:
    """Return the value, which must be a list of extents of a possible array."""
    shape = tuple(as_count(item, f"{where}[{index}]") for index, item in enumerate(as_list(value, where)))
    if len(shape) > MOST_DIMENSIONS or math.prod(filter(None, shape)) > MOST_ELEMENTS:
        raise unexpected(where, value, "a shape that an array can have")
    return shape


def as_truth(value: object, where: str) -> bool:
    """Return the value, which must be true or false."""
    if not isinstance(value, bool):
        raise unexpected(where, value, "true or false")
    return value


def as_list(value: object, where: str) -> Sequence[object]:
    """Return the value, which must be a list."""
    if not isinstance(value, list):
        raise unexpected(where, value, "a list")
    return value


def unexpected(where: str, value: object, expected: str) -> ArtifactError:
    """Return the error for a value of the wrong kind."""
    shown = json.dumps(value, default=repr)
    shown = shown if len(shown) <= 40 else f"{shown[:40]}..."
    return ArtifactError(f"{where} is {shown}, expected {expected}")
