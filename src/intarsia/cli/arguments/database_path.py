"""The option --database, with its environment variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from intarsia.measure.user_database import NO_DATABASE, VARIABLE, open_database

if TYPE_CHECKING:
    from intarsia.measure.database import Database

__all__ = ["OptionalPlace", "Place", "open_database", "open_optional_database"]

Place: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="PLACE",
        envvar=VARIABLE,
        help="Database of measurements: a file, or postgresql://USER:PASSWORD@SERVER/NAME. "
        "[default: measurements.db in the user's data folder]",
    ),
]

OptionalPlace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="PLACE",
        envvar=VARIABLE,
        help="Database of measurements: a file, or postgresql://USER:PASSWORD@SERVER/NAME, "
        "or none to store nothing. "
        "[default: measurements.db in the user's data folder]",
    ),
]


@contextmanager
def open_optional_database(
    location: str | None, on_wait: Callable[[str], object]
) -> Iterator[Database | None]:
    """Open the database that a command writes to, a new one if it is missing; None for "none".

    Raises:
        DatabaseError: The database cannot be opened, or is read-only.
        OutputError: The folder of the user's own cannot be created.
    """
    if location == NO_DATABASE:
        yield None
        return
    with open_database(location, create=True, on_wait=on_wait) as opened:
        yield opened
