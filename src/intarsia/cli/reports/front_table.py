"""Table of the front of a run, and the files that it was saved in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from intarsia.cli.reports.table import Table
from intarsia.support.units import duration_text, error_text

if TYPE_CHECKING:
    from intarsia.driver.precision_front import FrontPoint, SavedFront

HEADERS: Final = ("front", "toolchain", "median latency", "max error", "chosen")
NUMERIC: Final = frozenset({0, 2, 3})


def front_tables(points: Sequence[FrontPoint]) -> tuple[Table, ...]:
    """Return a table with a row for each point, the fastest first; none without a front."""
    rows = tuple(
        (
            str(number),
            point.name,
            duration_text(point.seconds),
            error_text(point.error),
            "yes" if point.chosen else "",
        )
        for number, point in enumerate(points, 1)
    )
    chosen = next((index for index, point in enumerate(points) if point.chosen), None)
    return (Table(HEADERS, rows, NUMERIC, chosen=chosen),) if rows else ()


def front_lines(saved: SavedFront | None) -> list[str]:
    """Return a line for each file of a saved front."""
    if saved is None:
        return []
    lines = [f"wrote {path}: {name}" for name, path in saved.artifacts.items()]
    lines += [f"no program of the front has an error of at most {error:g}" for error in saved.missed]
    return [*lines, f"wrote {saved.list}", f"wrote {saved.picture}"]
