"""The argument `database` of `tune`: an open database, or where one is."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from intarsia.support.errors import UsageError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def opens_database(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Open the database that a call names by its path or URL, and close it behind the call.

    The decorated function gets an open database, or None; False and "none" are None.

    Args:
        function: Function with the keyword argument `database`.

    Raises:
        UsageError: The argument is none of these.
    """

    @wraps(function)
    def call(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        from intarsia.measure.database import Database
        from intarsia.measure.user_database import NO_DATABASE, open_database

        named: Any = options.get("database")
        if named is None or named is False or named == NO_DATABASE:
            options["database"] = None
            return function(*args, **options)
        if isinstance(named, Database):
            return function(*args, **options)
        if not isinstance(named, str | os.PathLike):
            raise UsageError(
                f"database is {named!r}; expected a database, its file or its URL",
                help="give None or False for no database",
            )
        with closing(open_database(os.fspath(named), create=True)) as opened:
            options["database"] = opened
            return function(*args, **options)

    return call
