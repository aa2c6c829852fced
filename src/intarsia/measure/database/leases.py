"""Leases: which tuner measures what at the moment, so that no two measure the same.

A lease has an end, so that a tuner that died blocks nothing for long. Times are those of the database's
clock: machines that share a server need not agree on the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Double, delete, func, or_, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects import postgresql, sqlite

from intarsia.measure.database.tables import LEASES

_UNIX_EPOCH_DAY: Final = 2_440_587.5
"""Julian day on which 1970 began."""

_DAY_SECONDS: Final = 86_400.0


def take_leases(connection: Connection, keys: Iterable[str], owner: str, seconds: float) -> frozenset[str]:
    """Take the leases that are free, past their end, or the owner's already, and return their keys.

    Args:
        connection: Exclusive write transaction.
        keys: Keys of records.
        owner: Name of the tuner; no two have the same.
        seconds: Time from now to the end of the leases.
    """
    now = _now(connection)
    insert = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(LEASES)
    is_free = or_(LEASES.c.until < now, LEASES.c.owner == owner)
    values = {"owner": owner, "until": insert.excluded.until}
    statement = insert.on_conflict_do_update(index_elements=[LEASES.c.key], set_=values, where=is_free)
    taken: set[str] = set()
    for key in set(keys):
        row = statement.values(key=key, owner=owner, until=now + seconds).returning(LEASES.c.key)
        taken.update(connection.execute(row).scalars())
    return frozenset(taken)


def read_owners(connection: Connection, keys: Iterable[str]) -> dict[str, str]:
    """Return the owners of leases by key, also of those past their end."""
    query = select(LEASES.c.key, LEASES.c.owner).where(LEASES.c.key.in_(keys))
    return {key: owner for key, owner in connection.execute(query)}  # noqa: C416  # rows are no pairs


def end_leases(connection: Connection, keys: Sequence[str], owner: str) -> None:
    """Remove leases of an owner."""
    mine = (LEASES.c.owner == owner) & LEASES.c.key.in_(keys)
    connection.execute(delete(LEASES).where(mine))


def _now(connection: Connection) -> ColumnElement[Any]:
    """Return the expression of the seconds since 1970 by the database's clock."""
    if connection.dialect.name == "postgresql":
        return sql_cast(func.extract("epoch", func.clock_timestamp()), Double)
    return (func.julianday("now") - _UNIX_EPOCH_DAY) * _DAY_SECONDS
