"""Check values of rows: SQLite accepts any value in any column.

Another program, or a fault of the disk, may leave something else in a row of a file that SQLite reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class DamagedRowError(Exception):
    """A row has a value that Intarsia does not write; `Connections` turns it into a DatabaseError."""


@contextmanager
def reading_row(what: str) -> Iterator[None]:
    """Raise errors of reading a row as DamagedRowError.

    Args:
        what: Name of the row's content, such as "a record".

    Raises:
        DamagedRowError: The block raises an error of a wrong value or type.
    """
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise DamagedRowError(f"{what} cannot be read: {error}") from error


def stored_text(value: object) -> str:
    """Return a text as it is.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {value!r}")
    return value


def stored_number(value: object) -> float:
    """Return a number as it is.

    Raises:
        TypeError: It is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, found {value!r}")
    return value


def stored_json_text(value: object) -> str:
    """Return the text that a column has as JSON.

    Raises:
        ValueError: It is not JSON.
        TypeError: It is no text.
    """
    return stored_text(json.loads(stored_text(value)))


def stored_json_object(value: object) -> dict[str, Any]:
    """Return the object that a column has as JSON.

    Raises:
        ValueError: It is not JSON.
        TypeError: It is no object.
    """
    value_object = json.loads(stored_text(value))
    if not isinstance(value_object, dict):
        raise TypeError(f"expected a JSON object, found {value_object!r}")
    return value_object
