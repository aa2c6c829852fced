"""The version of the tables, and migrations of older versions."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final, TypeAlias

from sqlalchemy import Connection, insert, inspect, select, update

from intarsia.measure.database.connections import Connections
from intarsia.measure.database.damage import reading_row, stored_number
from intarsia.measure.database.failure import incomplete
from intarsia.measure.database.tables import LEASES, META, METADATA, MODELS, RUNS
from intarsia.support.errors import DatabaseError

Migration: TypeAlias = Callable[[Connection], None]
"""Function that changes the tables of one version, with their content, to those of the next."""

VERSION: Final = 4
"""Version of the tables in `tables`."""


def _add_runs(connection: Connection) -> None:
    RUNS.create(connection, checkfirst=True)


def _add_models(connection: Connection) -> None:
    MODELS.create(connection, checkfirst=True)


def _add_leases(connection: Connection) -> None:
    LEASES.create(connection, checkfirst=True)


MIGRATIONS: Final[MappingProxyType[int, Migration]] = MappingProxyType(
    {1: _add_runs, 2: _add_models, 3: _add_leases}
)
"""Migrations by the version that they start from. A released migration is never changed."""

_NAME: Final = "schema_version"


def prepare(connections: Connections) -> None:
    """Create the tables, or migrate them to the newest version, in one transaction.

    Raises:
        DatabaseError: The database is of another program, or of a version that is newer or too old.
    """
    with connections.snapshot() as connection:
        if _version(connections, connection) == VERSION:
            return
    with connections.writing(alone=True) as connection:
        version = _version(connections, connection)  # again: another process may have been faster
        if version is None:
            METADATA.create_all(connection)
            connection.execute(insert(META).values(name=_NAME, value=VERSION))
        else:
            _migrate(connections, connection, version)


def _migrate(connections: Connections, connection: Connection, version: int) -> None:
    if version > VERSION:
        raise DatabaseError(
            f"the database {connections.location} has version {version}, expected at most {VERSION}",
            help="it was made by a newer Intarsia: update this one, or use another database",
        )
    for step in range(version, VERSION):
        if step not in MIGRATIONS:
            raise DatabaseError(
                f"the database {connections.location} has version {version}, expected {VERSION}",
                help="this Intarsia cannot bring it up to date: use another database",
            )
        MIGRATIONS[step](connection)
    connection.execute(update(META).where(META.c.name == _NAME).values(value=VERSION))


def _version(connections: Connections, connection: Connection) -> int | None:
    """Return the version of the tables; None if there are none yet."""
    names = inspect(connection).get_table_names()
    if META.name not in names:
        if not METADATA.tables.keys().isdisjoint(names):
            raise incomplete(connections.location, META.name)
        if names and connections.is_sqlite:  # a server's database may be shared with others
            raise DatabaseError(
                f"the database {connections.location} is of another program: it has a table {min(names)!r}",
                help="give the name of another database or of a new file",
            )
        return None
    stored_version = connection.execute(select(META.c.value).where(META.c.name == _NAME)).scalar()
    with reading_row("the version of the tables"):
        return int(stored_number(stored_version or 0))
