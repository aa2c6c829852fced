"""The option --database, with its environment variable."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from intarsia.measure.user_database import VARIABLE, open_database

__all__ = ["Place", "open_database"]

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
