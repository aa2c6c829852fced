"""Reading JSON objects that someone else wrote, with errors that say which value is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from intarsia.support.errors import ArtifactError

T = TypeVar("T")

MOST_DIMENSIONS: Final = 64
"""Limit of NumPy."""
MOST_ELEMENTS: Final = 1 << 58
"""Elements of up to 16 bytes whose bytes an address of 63 bits can count."""


class Record:
    """A JSON object; `where` is its place in the file, for errors.

    Raises:
        ArtifactError: From every method, when the value is missing or of another kind.
    """

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise unexpected(where, value, "an object")
        self._value: dict[str, object] = value
        self._where = where

    def place(self, key: str) -> str:
        """Where a value stands, for errors."""
        return f"{self._where}.{key}"

    def keys(self) -> list[str]:
        """Names of all values."""
        return list(self._value)

    def get(self, key: str) -> object:
        """A value of any kind."""
        if key not in self._value:
            raise ArtifactError(f'{self._where} has no "{key}"')
        return self._value[key]

    def text(self, key: str) -> str:
        """A text."""
        return as_text(self.get(key), self.place(key))

    def optional_text(self, key: str) -> str | None:
        """A text or null."""
        return None if self.get(key) is None else self.text(key)

    def count(self, key: str) -> int:
        """A whole number, 0 or more."""
        return as_count(self.get(key), self.place(key))

    def counts(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers, 0 or more."""
        return self.each(key, as_count)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        return self.each(key, as_text)

    def record(self, key: str) -> Record:
        """An object."""
        return Record(self.get(key), self.place(key))

    def each(self, key: str, read: Callable[[object, str], T]) -> tuple[T, ...]:
        """A list, each item read by a function of the item and its place."""
        items = as_list(self.get(key), self.place(key))
        return tuple(read(item, f"{self.place(key)}[{index}]") for index, item in enumerate(items))


def as_text(value: object, where: str) -> str:
    """The value, which must be a text."""
    if not isinstance(value, str):
        raise unexpected(where, value, "a text")
    return value


def as_count(value: object, where: str) -> int:
    """The value, which must be a whole number, 0 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise unexpected(where, value, "a whole number, 0 or more")
    return value


def as_shape(value: object, where: str) -> tuple[int, ...]:
    """The value, which must be a list of extents whose product an array can have."""
    shape = tuple(as_count(item, f"{where}[{index}]") for index, item in enumerate(as_list(value, where)))
    if len(shape) > MOST_DIMENSIONS or math.prod(filter(None, shape)) > MOST_ELEMENTS:
        raise unexpected(where, value, "a shape that an array can have")
    return shape


def as_truth(value: object, where: str) -> bool:
    """The value, which must be true or false."""
    if not isinstance(value, bool):
        raise unexpected(where, value, "true or false")
    return value


def as_list(value: object, where: str) -> Sequence[object]:
    """The value, which must be a list."""
    if not isinstance(value, list):
        raise unexpected(where, value, "a list")
    return value


def unexpected(where: str, value: object, expected: str) -> ArtifactError:
    """The error for a value of the wrong kind."""
    shown = json.dumps(value, default=repr)
    shown = shown if len(shown) <= 40 else f"{shown[:40]}..."
    return ArtifactError(f"{where} is {shown}, expected {expected}")
