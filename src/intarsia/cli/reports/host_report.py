"""Report of `intarsia tune --every-host`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from intarsia.cli.reports.report import Report
from intarsia.cli.reports.table import Table
from intarsia.support.errors import IntarsiaError, StoppedError
from intarsia.support.units import NOTHING, duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from intarsia.driver.tune_hosts import HostAnswer

HEADERS = ("machine", "CPU", "cores", "worker threads", "toolchain", "median latency")
NUMERIC = frozenset({2, 3, 5})


def host_path(base: Path, answer: HostAnswer) -> Path:
    """Return the path of the artifact of a machine: its name stands before the suffix of the given path."""
    return base.with_name(f"{base.stem}.{answer.name}{base.suffix}")


def hosts_report(name: str, answers: Sequence[HostAnswer], base: Path) -> Report:
    """Return the report of a run for several machines, whose artifacts are written.

    Args:
        name: Name of the model.
        answers: Answers, in the order of the rows.
        base: Path to which `host_path` adds the names of machines.
    """
    lines: list[str] = []
    documents: list[Mapping[str, Any]] = []
    for answer in answers:
        path = host_path(base, answer)
        if answer.error is None:
            lines.append(f"wrote {path} ({size_text(len(answer.artifact))})")
        else:
            lines.append(f"{answer.name}: no artifact: {answer.error.problem}")
        documents.append(_document(answer, path))
    error: IntarsiaError | None = next((answer.error for answer in answers if answer.error is not None), None)
    if error is None and any(answer.result["stopped"] for answer in answers):
        error = StoppedError(
            "stopped before the end; the best so far was saved for each machine",
            help="measurements are stored in the database: run the same command again to continue",
        )
    document = {"model": name, "hosts": documents}
    return Report(document, (Table(HEADERS, tuple(map(_row, answers)), NUMERIC), *lines), error)


def _row(answer: HostAnswer) -> tuple[str, ...]:
    host, chosen = answer.host, answer.chosen
    latency = chosen.get("latency_seconds")
    return (
        answer.name,
        host.cpu_model,
        str(host.cores),
        str(answer.threads),
        str(chosen.get("toolchain", NOTHING)),
        NOTHING if latency is None else duration_text(latency),
    )


def _document(answer: HostAnswer, path: Path) -> Mapping[str, Any]:
    error = answer.error
    return {
        **answer.result,
        "machine": answer.name,
        "host": answer.host.to_json(),
        "threads": answer.threads,
        "file": None if error is not None else str(path),
        "bytes": len(answer.artifact),
        "error": None if error is None else error.problem,
    }
