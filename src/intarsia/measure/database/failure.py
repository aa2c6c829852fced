"""Translate errors of databases into messages for users.

An error that is not in these tables is a bug of Intarsia, and is left as it is.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Final

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from intarsia.measure.database.damage import DamagedRowError
from intarsia.measure.database.place import Place
from intarsia.support.errors import DatabaseError

_LOCKED: Final = "is locked by another process"
_WAIT: Final = "wait until the other process has finished, or end it; all that was measured before is kept"
_FULL: Final = "cannot be written: the disk is full"
_SPACE: Final = "free some space, then run the same command again: all that was measured before is kept"
_WRITABLE: Final = "choose a database in a folder that you may write to"
_UNREADABLE: Final = (
    "move it aside and measure again, or save what can be read: sqlite3 FILE .recover | sqlite3 NEW_FILE"
)

_INCOMPLETE: Final = "lacks a part that Intarsia made"
_MOVE: Final = "something else has changed it: restore it, or move it aside and measure again"
_MISSING: Final = re.compile(r"no such (table|column): |table \S+ has no column named ")

UNDECODABLE: Final = "Could not decode to UTF-8"
"""Beginning of Python's message for a text that is not UTF-8; the error has no code."""

_UNSUPPORTED: Final = "unsupported file format"
"""SQLite's message for an unknown number of the file format; its code is that of mistakes in SQL."""

_SQLITE: Final = (
    ("SQLITE_BUSY", _LOCKED, _WAIT),
    ("SQLITE_LOCKED", _LOCKED, _WAIT),
    ("SQLITE_NOTADB", "is not a database", "give the name of a database or of a new file"),
    ("SQLITE_CORRUPT", "is damaged", _UNREADABLE),
    ("SQLITE_FULL", _FULL, _SPACE),
    ("SQLITE_READONLY", "cannot be written: it is read-only", _WRITABLE),
    ("SQLITE_PERM", "cannot be opened: permission denied", _WRITABLE),
    ("SQLITE_CANTOPEN", "cannot be opened", "see that its folder exists and that you may write to it"),
    ("SQLITE_IOERR", "cannot be read or written: the disk failed", "see that the disk works and is not full"),
)
"""Prefixes of SQLite's error names; longer names are kinds of the shorter ones."""

_SERVER: Final = "see that the server runs, and that host and port are right"
_SQLSTATES: Final = (
    ("55P03", _LOCKED, _WAIT),
    ("40P01", _LOCKED, "run the same command again; all that was measured before is kept"),
    ("53100", _FULL, _SPACE),
    ("53300", "has too many connections", "wait until others have finished, or raise max_connections"),
    ("42501", "does not let this user do that", "ask for the right to create tables, read and write there"),
    ("25006", "cannot be written: it is read-only", "use the primary server"),
    ("28", "refuses this user", "see that user and password in the URL are right"),
    ("3D000", "does not exist on the server", "create it first: createdb NAME"),
    ("08001", "cannot be reached", _SERVER),
    ("08", "has lost the connection", _SERVER),
    ("42P01", _INCOMPLETE, _MOVE),
    ("42703", _INCOMPLETE, _MOVE),
    ("57P", "has ended the connection", "see that the server runs, then run the same command again"),
)
"""Prefixes of PostgreSQL's SQLSTATE codes; the first match counts, so that longer prefixes come first."""

_CONNECTING: Final = (
    (r"password authentication failed|no password supplied", "28"),
    (r'role ".*" does not exist|no pg_hba\.conf entry', "28"),
    (r'database ".*" does not exist', "3D000"),
    (r"too many clients|remaining connection slots", "53300"),
    (r"", "08001"),
)
"""SQLSTATE codes for errors while connecting, which only have a text; the last pattern matches any text."""


def database_error(location: Place, error: SQLAlchemyError | sqlite3.Error) -> DatabaseError | None:
    """Return the error for users, or None for a bug of Intarsia."""
    if isinstance(error, PoolTimeoutError):
        return DatabaseError(
            f"the database {location} is used by too many threads at once", help="use fewer threads"
        )
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        return _of_sqlite(location, cause)
    if isinstance(error, DBAPIError) and cause is not None:
        return _of_postgresql(location, error, cause)
    return None


def _of_sqlite(location: Place, error: sqlite3.Error) -> DatabaseError | None:
    if _MISSING.match(str(error)):  # its code is that of all mistakes in SQL
        return DatabaseError(f"the database {location} {_INCOMPLETE}: {error}", help=_MOVE)
    if str(error).startswith(_UNSUPPORTED):
        return DatabaseError(f"the database {location} is damaged", help=_UNREADABLE)
    if str(error).startswith(UNDECODABLE):
        return DatabaseError(f"the database {location} is damaged: {error}", help=_MOVE)
    name = getattr(error, "sqlite_errorname", "")
    for prefix, problem, help_text in _SQLITE:
        if name.startswith(prefix):
            return DatabaseError(f"the database {location} {problem}", help=help_text)
    return None


def _of_postgresql(location: Place, error: DBAPIError, cause: BaseException) -> DatabaseError | None:
    code: str | None = getattr(cause, "sqlstate", None)
    text = str(cause).strip()
    if code is None and type(cause).__name__ == "OperationalError":
        code = "08" if error.connection_invalidated else _code_of_connecting(text)
    if code is None:
        return None
    for prefix, problem, help_text in _SQLSTATES:
        if code.startswith(prefix):
            reason = text.splitlines()[-1].strip() if text else ""
            message = f"the database {location} {problem}"
            return DatabaseError(f"{message}: {reason}" if reason else message, help=help_text)
    return None


def _code_of_connecting(text: str) -> str:
    return next(code for pattern, code in _CONNECTING if re.search(pattern, text))


def damaged_row(location: Place, error: DamagedRowError) -> DatabaseError:
    """Return the error for a row that Intarsia did not write."""
    return DatabaseError(f"the database {location} is damaged: {error}", help=_MOVE)


def incomplete(location: Place, table: str) -> DatabaseError:
    """Return the error for an Intarsia database without one of its tables."""
    return DatabaseError(f"the database {location} {_INCOMPLETE}: no such table: {table}", help=_MOVE)


def missing_driver(location: Place) -> DatabaseError:
    """Return the error for a database with a driver that is not installed."""
    return DatabaseError(
        f"the database {location} needs the package psycopg, which is not installed or does not work",
        help="pip install 'intarsia[postgresql]'",
    )
