"""The user's database of measurements: a file or URL, or the one in the data folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from intarsia.support.errors import DatabaseError
from intarsia.support.files import output_error
from intarsia.support.user_folders import data_folder

if TYPE_CHECKING:
    from intarsia.measure.database import Database

VARIABLE: Final = "INTARSIA_DATABASE"
NO_DATABASE: Final = "none"
"""Location that stores nothing, where a command can do without a database."""


def default_database(environment: Mapping[str, str]) -> Path:
    """Return the path of the user's database by the XDG base directory specification."""
    return data_folder(environment) / "measurements.db"


def open_database(
    location: str | None, *, create: bool = False, on_wait: Callable[[str], object] | None = None
) -> Database:
    """Open the requested database, or the user's own.

    Args:
        location: File or URL; None or "" for the user's own.
        create: Whether to create a missing database, and the folder of the user's own, and to check that
            measurements can be added.
        on_wait: Function that is called once with a message when another process holds the lock for seconds.

    Raises:
        DatabaseError: The location is "none", or the database cannot be opened, or is read-only although
            `create` is set.
        OutputError: The folder of the user's own cannot be created.
    """
    from intarsia.measure.database import Database

    if location == NO_DATABASE:
        raise DatabaseError(
            "this command needs a database, and the given one is none",
            help=f"name a file with --database or {VARIABLE}; ./{NO_DATABASE} is a file of that name",
        )
    path = location or default_database(os.environ)
    if create and isinstance(path, Path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(path.parent, error) from error
    opened = Database.open(path, create=create, on_wait=on_wait)
    if create:
        try:
            opened.check_writable()
        except BaseException:  # also Ctrl-C: the file is not left open
            opened.close()
            raise
    return opened
