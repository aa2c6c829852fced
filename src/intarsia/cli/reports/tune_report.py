"""Report of `intarsia tune`."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from intarsia.cli.reports.front_table import front_lines, front_tables
from intarsia.cli.reports.gate_text import MAX_ERROR_MEANS
from intarsia.cli.reports.report import Report
from intarsia.cli.reports.schedule_table import schedule_lines, schedule_tables
from intarsia.cli.reports.size_table import size_tables
from intarsia.cli.reports.stream_table import stream_lines, stream_tables
from intarsia.cli.reports.table import Table
from intarsia.support.errors import IntarsiaError, StoppedError, TooSlowError
from intarsia.support.units import duration_text, size_text

if TYPE_CHECKING:
    from pathlib import Path

    from intarsia.driver.precision_front import SavedFront
    from intarsia.driver.result import TuneResult
    from intarsia.tune.contest.candidate_record import CandidateRecord


def tune_report(
    name: str,
    result: TuneResult,
    path: Path,
    required_ms: float | None,
    plan: str | None,
    page: Path | None = None,
    front: SavedFront | None = None,
) -> Report:
    """Return the report of a tuning run.

    Args:
        name: Name of the model.
        result: Result of the run.
        path: Path of the saved artifact.
        required_ms: Required latency in milliseconds, or None.
        plan: Path of the written plan, or None.
        page: Path of the written page of HTML, or None.
        front: Files of the saved front, or None.
    """
    from intarsia.driver.result_table import HEADERS, NUMERIC, candidate_row
    from intarsia.support.files import folder_size

    size = folder_size(path)
    rows = tuple(candidate_row(name, record) for record in result.candidates)
    best = next(index for index, record in enumerate(result.candidates) if record.chosen)
    lines = [
        *(_fate(record) for record in result.candidates if record.timing is None),
        *_within_noise(result),
        *_search_lines(result),
        *schedule_lines(result.schedules),
        *stream_lines(result.streams),
        f"reference result: {result.reference}",
        MAX_ERROR_MEANS,
        *_repeated(result),
        *([] if plan is None else [f"wrote the plan {plan}"]),
        *([] if page is None else [f"wrote the report {page} ({size_text(folder_size(page))})"]),
        *front_lines(front),
        f"wrote {path} ({size_text(size)})",
        f"run it: intarsia run {shlex.quote(str(path))}{_shape_flags(result)}",
    ]
    document: dict[str, Any] = {
        **result.to_json(),
        "model": name,
        "file": str(path),
        "bytes": size,
        "plan": plan,
        "report": None if page is None else str(page),
        "front_files": {} if front is None else {name: str(file) for name, file in front.artifacts.items()},
        "tuning_notes": list(result.explanation.notes),
    }
    error: IntarsiaError | None = None if required_ms is None else _too_slow(name, result.chosen, required_ms)
    if result.stopped:
        error = StoppedError(
            "stopped before the end; the best so far was saved"
            + ("" if result.chosen.ratio else ", by single measurements: nothing was raced"),
            help="measurements are stored in the database: run the same command again to continue",
        )
    tables = (
        Table(HEADERS, rows, NUMERIC, chosen=best),
        *front_tables(result.front),
        *size_tables(result.candidates),
        *schedule_tables(result.schedules),
        *stream_tables(result.streams),
    )
    return Report(document, (*tables, *lines), error)


def _fate(record: CandidateRecord) -> str:
    return f"{record.name}: {record.status.value}: {record.reason}"


def _search_lines(result: TuneResult) -> list[str]:
    """Return a line on the search for partitions, if there was one; `intarsia explain` has its losses."""
    from intarsia.report.search_line import search_line

    search = result.explanation.search
    return [] if search is None else [search_line(search)]


def _repeated(result: TuneResult) -> list[str]:
    """Return a line on a repeated result, and how to measure again."""
    if result.finished_at is None:
        return []
    moment = datetime.fromtimestamp(result.finished_at, UTC)
    return [
        f"repeated the result of the same run at {moment:%Y-%m-%d %H:%M} UTC, without measuring; "
        "a larger --budget continues the search, another --database starts over"
    ]


def _within_noise(result: TuneResult) -> list[str]:
    """Return a line on candidates within the noise of the winner."""
    close = [
        record.name
        for record in result.candidates
        if not record.chosen and record.ratio is not None and record.ratio.contains_one
    ]
    winner = result.chosen.name
    return [f"within noise of {winner}: {', '.join(close)}"] if close else []


def _too_slow(name: str, chosen: CandidateRecord, required_ms: float) -> TooSlowError | None:
    assert chosen.timing is not None
    if chosen.timing.median * 1e3 <= required_ms:
        return None
    return TooSlowError(
        f"{name} takes {duration_text(chosen.timing.median)} with {chosen.name}, "
        f"required at most {required_ms:g} ms"
    )


def _shape_flags(result: TuneResult) -> str:
    """Return --shape flags with the measured shapes of inputs with symbolic shapes."""
    pairs = zip(result.executable.inputs, result.self_test.inputs, strict=True)
    return "".join(
        f" --shape {shlex.quote(info.name)}={','.join(map(str, array.shape))}"
        for info, array in pairs
        if info.shape is None or not all(isinstance(dim, int) and dim >= 0 for dim in info.shape)
    )
