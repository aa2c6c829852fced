"""The argument `database` of `tune`: an open database, or where one is."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def opens_database(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Open the database that a call names by its path or URL, and close it behind the call.

    The decorated function gets an open database, or None.

    Args:
        function: Function with the keyword argument `database`.
    """

    @wraps(function)
    def call(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        named: Any = options.get("database")
        if not isinstance(named, str | os.PathLike):
            return function(*args, **options)
        from intarsia.measure.user_database import open_database

        with closing(open_database(os.fspath(named), create=True)) as opened:
            options["database"] = opened
            return function(*args, **options)

    return call
