"""Transactions: how SQLite and PostgreSQL are opened, and what a transaction may see and lock."""

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
from intarsia.measure.database.failure import damaged_row, database_error, missing_driver
from intarsia.measure.database.place import Place
from intarsia.measure.database.tables import META
from intarsia.support.errors import DatabaseError

T = TypeVar("T")

_LOCK_KEY: Final = 0x1A7A_251A
"""Of the advisory lock that lets one process at a time change much of a PostgreSQL database."""

_PAUSE_SECONDS: Final = 0.02

NOTE_SECONDS: Final = 2.0
"""A transaction that waits longer for others is worth a note."""


class Connections:
    """Connections to one database, for any number of threads.

    Args:
        place: Which database.
        create: Whether a file that does not exist is made.
        busy_seconds: How long to wait for locks of others.
        on_wait: Called once, with a line for people, when a transaction has waited for `NOTE_SECONDS`.

    Raises:
        DatabaseError: The driver is not installed, or there is no such file.
    """

    def __init__(
        self,
        place: Place,
        *,
        create: bool,
        busy_seconds: float,
        on_wait: Callable[[str], object] | None = None,
    ) -> None:
        self.place = place
        self._on_wait = on_wait
        if place.path is not None:
            _check_file(place, create)
            engine = _sqlite(place, create, busy_seconds)
        else:
            engine = _postgresql(place, busy_seconds)
        self._engine = engine
        self._snapshot = (
            engine if self.is_sqlite else engine.execution_options(isolation_level="REPEATABLE READ")
        )

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file."""
        return self.place.path is not None

    def rows(self, read: Callable[[Row[Any]], T], query: Select[Any], **parameters: object) -> tuple[T, ...]:
        """The answer to one query; in SQLite without a transaction, which one statement does not need.

        Args:
            read: Makes of a row what is wanted; may raise DamagedRowError.
            query: What is asked.
            parameters: Values of the placeholders of the query.

        Raises:
            DatabaseError: The database failed, or a row is damaged.
        """
        with self.translated():
            with self._noting_waits(), self._engine.connect() as connection:
                rows = connection.execute(query, parameters).all()
            return tuple(map(read, rows))

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A transaction for reading in which the database stands still.

        Raises:
            DatabaseError: The database failed.
        """
        with self.translated(), ExitStack() as closing:
            with self._noting_waits():
                connection = closing.enter_context(self._snapshot.connect())
                self._begin(connection, "BEGIN")
            yield connection

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[Connection]:
        """A transaction for writing: all of it or nothing.

        Args:
            alone: Other transactions that are to be alone wait for this one (in SQLite all do). Without it
                only one record may be locked: then no two transactions can wait for each other.

        Raises:
            DatabaseError: The database failed; nothing was changed.
        """
        with self.translated(), ExitStack() as closing:
            with self._noting_waits():
                connection = closing.enter_context(self._engine.begin())
                self._begin(connection, "BEGIN IMMEDIATE")
                if alone and not self.is_sqlite:
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK_KEY})"))
            yield connection

    def compact(self) -> None:
        """Give space that is not used any more back to the disk; PostgreSQL does so by itself."""
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
        """Begin in SQLite, whose driver is left in autocommit: by itself it begins later than it should."""
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
            on_wait(f"waiting for the database {self.place}, which another process may have locked")

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn errors of drivers, and of damaged rows, into errors for people that name the database.

        Raises:
            DatabaseError: There was one.
        """
        try:
            yield
        except DamagedRowError as error:
            raise damaged_row(self.place, error) from error
        except (SQLAlchemyError, sqlite3.Error) as error:
            found = database_error(self.place, error)
            if found is None:
                raise
            raise found from error


def _check_file(place: Place, create: bool) -> None:
    path = place.path
    assert path is not None
    try:
        is_folder, exists, has_folder = path.is_dir(), path.exists(), path.parent.is_dir()
    except OSError as error:  # a folder that may not be entered, a name that is too long
        reason = (error.strerror or str(error)).lower()
        raise DatabaseError(
            f"the database {place} cannot be opened: {reason}", help="give another place"
        ) from error
    if is_folder:
        raise DatabaseError(f"the database {place} is a folder", help="give the name of a file in it")
    if not create and not exists:
        raise DatabaseError(
            f"there is no database {place}", help="measure something first, or give another place"
        )
    if not has_folder:
        raise DatabaseError(
            f"the database {place} cannot be made: its folder does not exist", help="create the folder first"
        )


def _sqlite(place: Place, create: bool, busy_seconds: float) -> Engine:
    assert place.path is not None
    uri = f"file:{quote(str(place.path.absolute()))}?mode={'rwc' if create else 'rw'}"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            if _may_be_changed(connection):
                _set_wal(connection, busy_seconds)
            connection.execute("PRAGMA synchronous=NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    return create_engine(place.url, creator=connect, pool_reset_on_return=None)


def _may_be_changed(connection: sqlite3.Connection) -> bool:
    """Whether the file is ours or empty; that of another program is not even set to another journal."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return not names or META.name in names


def _set_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Set the write-ahead log. SQLite does not wait for others when the mode is changed, so that we do."""
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


def _postgresql(place: Place, busy_seconds: float) -> Engine:
    waiting = {} if "connect_timeout" in place.url.query else {"connect_timeout": 10}
    try:
        engine = create_engine(place.url, pool_pre_ping=True, connect_args=waiting)
    except ImportError as error:
        raise missing_driver(place) from error

    @event.listens_for(engine, "connect")
    def set_timeout(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {max(1, round(busy_seconds * 1000))}")
        connection.commit()

    return engine
