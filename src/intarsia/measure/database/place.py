"""Locations of databases: a file, or a database on a PostgreSQL server."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from intarsia.support.errors import DatabaseError

_EXPECTED: Final = "give a file, sqlite:///FILE, or postgresql://USER:PASSWORD@SERVER:PORT/NAME"
_POSTGRESQL: Final = frozenset({"postgresql", "postgres", "postgresql+psycopg"})


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a database.

    Attributes:
        url: URL for SQLAlchemy.
        path: Path of the file; None for a server.
    """

    url: URL
    path: Path | None

    @classmethod
    def of(cls, where: str | Path) -> Place:
        """Read a path or URL.

        Raises:
            DatabaseError: The path or URL is invalid.
        """
        text = os.fspath(where)
        if "://" not in text:
            return cls._file(text)
        try:
            url = make_url(text)
        except (ArgumentError, ValueError) as error:  # its text may show the password
            raise DatabaseError("the URL of the database is malformed", help=_EXPECTED) from error
        if url.drivername == "sqlite":
            return cls._file(url.database or "")
        if url.drivername not in _POSTGRESQL:
            raise DatabaseError(f"there is no database of kind {url.drivername!r}", help=_EXPECTED)
        return cls(url.set(drivername="postgresql+psycopg"), None)

    @classmethod
    def _file(cls, text: str) -> Place:
        if "\0" in text:
            raise DatabaseError(f"no file can have the name {text!r}", help=_EXPECTED)
        if text in {"", ":memory:"}:
            raise DatabaseError("the database has no file, so that it would not last", help=_EXPECTED)
        path = Path(text)
        return cls(URL.create("sqlite+pysqlite", database=str(path)), path)

    def __str__(self) -> str:
        """Return the path, or the URL without its password."""
        if self.path is not None:
            return str(self.path)
        return self.url.set(drivername="postgresql").render_as_string(hide_password=True)
