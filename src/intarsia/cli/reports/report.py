"""The result of a command, as a document and as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from intarsia.cli.reports.table import Table
from intarsia.support.errors import IntarsiaError

Block: TypeAlias = str | Table


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a command.

    Attributes:
        document: Complete result as plain data.
        blocks: Texts and tables in order; a blank line is printed around each table.
        error: Error beside a result, such as a latency above the required one.
    """

    document: Mapping[str, Any]
    blocks: tuple[Block, ...]
    error: IntarsiaError | None = None


def plain_data(value: object) -> object:
    """Return the value with numbers that JSON cannot represent (NaN, infinity) replaced by null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): plain_data(item) for key, item in value.items()}
        case list() | tuple():
            return [plain_data(item) for item in value]
        case _:
            return value


def error_document(error: IntarsiaError, exit_code: int | None = None) -> dict[str, object]:
    """Return an error as plain data."""
    return {
        "error": error.problem,
        "notes": list(getattr(error, "__notes__", ())),
        "help": error.help,
        "exit_code": error.exit_code if exit_code is None else exit_code,
    }
