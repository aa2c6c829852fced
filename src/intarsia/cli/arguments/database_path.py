"""Which database a command means: --database, INTARSIA_DATABASE, or the one in the user's data folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

if TYPE_CHECKING:
    from intarsia.measure.database import Database

VARIABLE: Final = "INTARSIA_DATABASE"

Place: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="PLACE",
        envvar=VARIABLE,
        help="A file or postgresql://USER:PASSWORD@SERVER/NAME; measurements.db in the user's data folder "
        "if not given.",
    ),
]


def default_database(environment: Mapping[str, str]) -> Path:
    """The user's own database, where the XDG base directory specification wants it."""
    folder = Path(environment.get("XDG_DATA_HOME", ""))
    if not folder.is_absolute():  # the specification says to ignore a relative one
        folder = Path.home() / ".local" / "share"
    return folder / "intarsia" / "measurements.db"


def open_database(
    place: str | None, *, create: bool = False, on_wait: Callable[[str], object] | None = None
) -> Database:
    """Open the database that is meant.

    Args:
        place: As given; None or "" for the user's own.
        create: Whether one that does not exist is made, for the user's own with its folder.
        on_wait: Called once, with a line for people, when another process has it locked for seconds.

    Raises:
        DatabaseError: It cannot be opened.
        OutputError: The folder of the user's own cannot be made.
    """
    from intarsia.measure.database import Database
    from intarsia.support.files import output_error

    if place:
        return Database.open(place, create=create, on_wait=on_wait)
    path = default_database(os.environ)
    if create:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(path.parent, error) from error
    return Database.open(path, create=create, on_wait=on_wait)
