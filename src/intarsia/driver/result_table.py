"""The candidates of a tuning run as a table, for reports and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from intarsia.measure.timing.ratio_text import ratio_text
from intarsia.support.units import NOTHING, duration_text, error_text
from intarsia.tune.contest.candidate_record import CandidateRecord

HEADERS: Final = ("model", "toolchain", "median latency", "ratio to the best", "max error", "chosen")
NUMERIC: Final = frozenset({2, 4})
"""Positions of the columns with numbers."""


def candidate_row(model: str, record: CandidateRecord) -> tuple[str, ...]:
    """Return a cell for each of `HEADERS`.

    Args:
        model: Name of the model.
        record: Outcome of a candidate.
    """
    return (
        model,
        record.name,
        NOTHING if record.timing is None else duration_text(record.timing.median),
        record.status.value if record.ratio is None else ratio_text(record.ratio),
        NOTHING if record.max_error is None else error_text(record.max_error),
        "yes" if record.chosen else "",
    )


def html_table(model: str, records: Iterable[CandidateRecord]) -> str:
    """Return the table in HTML, with the winner in bold and reasons of failures as tooltips."""
    rows = [f"<tr>{_cells(HEADERS, 'th')}</tr>"]
    for record in records:
        style = ' style="font-weight: bold"' if record.chosen else ""
        title = f' title="{escape(record.reason)}"' if record.reason else ""
        rows.append(f"<tr{style}{title}>{_cells(candidate_row(model, record), 'td')}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _cells(texts: Sequence[str], tag: str) -> str:
    aligned = (' style="text-align: right"' if column in NUMERIC else "" for column in range(len(texts)))
    return "".join(
        f"<{tag}{style}>{escape(text)}</{tag}>" for style, text in zip(aligned, texts, strict=True)
    )
