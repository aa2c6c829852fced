"""Connections to SQLite and PostgreSQL, and the isolation and locks of transactions."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Row, Select, create_engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from intarsia.measure.database.damage import DamagedRowError
from intarsia.measure.database.failure import UNDECODABLE, damaged_row, database_error, missing_driver
from intarsia.measure.database.place import Place
from intarsia.measure.database.tables import META
from intarsia.support.errors import DatabaseError

T = TypeVar("T")

_LOCK_KEY: Final = 0x1A7A_251A
"""Key of the advisory lock for exclusive transactions on a PostgreSQL database."""

_PAUSE_SECONDS: Final = 0.02
"""Seconds between two attempts to set the write-ahead log."""

NOTE_SECONDS: Final = 2.0
"""Seconds after which a transaction that waits for another one is reported."""


class Connections:
    """Connections to one database, for any number of threads.

    Args:
        location: Location of the database.
        create: Whether a missing file is created.
        busy_seconds: Maximum wait for locks of other processes, in seconds.
        on_wait: Called once, with a line for users, when a transaction has waited for `NOTE_SECONDS`.

    Raises:
        DatabaseError: The driver is not installed, or there is no such file.
    """

    def __init__(
        self,
        location: Place,
        *,
        create: bool,
        busy_seconds: float,
        on_wait: Callable[[str], object] | None = None,
    ) -> None:
        self.location = location
        self._on_wait = on_wait
        if location.path is not None:
            _check_file(location, create)
            engine = _sqlite(location, create, busy_seconds)
        else:
            engine = _postgresql(location, busy_seconds)
        self._engine = engine
        self._snapshot = (
            engine if self.is_sqlite else engine.execution_options(isolation_level="REPEATABLE READ")
        )

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is an SQLite file."""
        return self.location.path is not None

    def rows(self, read: Callable[[Row[Any]], T], query: Select[Any], **parameters: object) -> tuple[T, ...]:
        """Run one query and return its rows; in SQLite without a transaction.

        Args:
            read: Function that converts a row; may raise DamagedRowError.
            query: Query with named placeholders.
            parameters: Values of the placeholders of the query.

        Raises:
            DatabaseError: The database failed, or a row is damaged.
        """
        with self.translating_errors():
            with self._noting_waits(), self._engine.connect() as connection:
                rows = connection.execute(query, parameters).all()
            return tuple(map(read, rows))

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Open a read transaction on a snapshot of the database.

        Raises:
            DatabaseError: The database failed.
        """
        with self.translating_errors(), ExitStack() as closing:
            with self._noting_waits():
                connection = closing.enter_context(self._snapshot.connect())
                self._begin(connection, "BEGIN")
            yield connection

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[Connection]:
        """Open an atomic write transaction.

        Args:
            alone: Whether it excludes other exclusive transactions (in SQLite all do). Without it only one
                record
                may be locked: then no two transactions can deadlock.

        Raises:
            DatabaseError: The database failed; nothing was changed.
        """
        with self.translating_errors(), ExitStack() as closing:
            with self._noting_waits():
                connection = closing.enter_context(self._engine.begin())
                self._begin(connection, "BEGIN IMMEDIATE")
                if alone and not self.is_sqlite:
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_KEY})"))
            yield connection

    def compact(self) -> None:
        """Return unused space to the disk; PostgreSQL does so by itself."""
        if not self.is_sqlite:
            return
        try:
            with self._noting_waits(), self._engine.connect() as connection:
                connection.exec_driver_sql("VACUUM")
        except SQLAlchemyError:  # another process reads, or the disk is full: then the space is used later
            return

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _begin(self, connection: Connection, statement: str) -> None:
        """Begin a transaction in SQLite, since its driver would begin too late by itself."""
        if self.is_sqlite:
            connection.exec_driver_sql(statement)

    @contextmanager
    def _noting_waits(self) -> Iterator[None]:
        """Call `on_wait` if the block takes long, most likely because another process has a lock.

        A new connection waits for one too: SQLite reads the tables and sets the journal when it connects.
        """
        if self._on_wait is None:
            yield
            return
        timer = threading.Timer(NOTE_SECONDS, self._note_wait)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _note_wait(self) -> None:
        on_wait, self._on_wait = self._on_wait, None
        if on_wait is not None:
            on_wait(f"waiting for the database {self.location}, which another process may have locked")

    @contextmanager
    def translating_errors(self) -> Iterator[None]:
        """Turn errors of drivers and of damaged rows into errors for users that name the database.

        Raises:
            DatabaseError: There was one.
        """
        try:
            yield
        except DamagedRowError as error:
            raise damaged_row(self.location, error) from error
        except (SQLAlchemyError, sqlite3.Error) as error:
            readable_error = database_error(self.location, error)
            if readable_error is None:
                raise
            raise readable_error from error


def _check_file(location: Place, create: bool) -> None:
    path = location.path
    assert path is not None
    try:
        is_folder, exists, has_folder = path.is_dir(), path.exists(), path.parent.is_dir()
    except OSError as error:  # a folder that may not be entered, a name that is too long
        reason = (error.strerror or str(error)).lower()
        raise DatabaseError(
            f"the database {location} cannot be opened: {reason}", help="give another place"
        ) from error
    if is_folder:
        raise DatabaseError(f"the database {location} is a folder", help="give the name of a file in it")
    if not create and not exists:
        raise DatabaseError(
            f"there is no database {location}", help="measure something first, or give another place"
        )
    if not has_folder:
        raise DatabaseError(
            f"the database {location} cannot be made: its folder does not exist",
            help="create the folder first",
        )


def _sqlite(location: Place, create: bool, busy_seconds: float) -> Engine:
    assert location.path is not None
    uri = f"file:{quote(str(location.path.absolute()))}?mode={'rwc' if create else 'rw'}"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            if _may_be_changed(connection):
                _set_wal(connection, busy_seconds)
            connection.execute("PRAGMA synchronous=NORMAL")
        except UnicodeDecodeError as error:  # SQLite's message quotes a damaged schema, which is no UTF-8
            connection.close()
            raise sqlite3.OperationalError(f"{UNDECODABLE}: {error}") from error
        except BaseException:
            connection.close()
            raise
        return connection

    return create_engine(location.url, creator=connect, pool_reset_on_return=None)


def _may_be_changed(connection: sqlite3.Connection) -> bool:
    """Return whether the file is ours or empty; the journal mode of another program's file stays as it is."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return not names or META.name in names


def _set_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Set the write-ahead log, with retries: SQLite does not wait for locks when the mode is changed."""
    end = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
            if not is_busy or time.monotonic() >= end:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _postgresql(location: Place, busy_seconds: float) -> Engine:
    waiting = {} if "connect_timeout" in location.url.query else {"connect_timeout": 10}
    try:
        engine = create_engine(location.url, pool_pre_ping=True, connect_args=waiting)
    except ImportError as error:
        raise missing_driver(location) from error

    @event.listens_for(engine, "connect")
    def set_timeout(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {max(1, round(busy_seconds * 1000))}")
        connection.commit()

    return engine
