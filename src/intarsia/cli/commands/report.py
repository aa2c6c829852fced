"""`intarsia report`: a finished tuning run as one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from intarsia.cli.arguments.trust import TRUSTED, RequireSignature, Trust, Untrusted
from intarsia.cli.console.console import Console
from intarsia.cli.reports.report import Report
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.report.report_source import ReportSource

DEFAULT_OUTPUT = "MODEL.html"
_SQLITE = b"SQLite format 3\0"
_SERVER = "postgresql"


def report(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="ARTIFACT|DATABASE",
            help="Artifact of intarsia tune, or database of measurements with finished runs.",
        ),
    ],
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Output file.")
    ] = DEFAULT_OUTPUT,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Model of the run in a database: its name, or the beginning of its digest. "
            "[default: that of the newest run]",
        ),
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile/--no-profile", help="Run an artifact for the times of its kernels.")
    ] = True,
    untrusted: Untrusted = False,
    require_signature: RequireSignature = None,
) -> Report:
    """Write a report of a tuning run as one HTML page.

    The page loads nothing, so that one file is enough to send.

    It has the verdict, a map of the graph, what was decided and what that gained, the use of the budget, the
    times of kernels, errors, the machine, and how to repeat the run. An artifact is run for the times of its
    kernels; all else is read from its records.
    """
    from intarsia.cli.arguments.output import check_writable, refuse_to_replace
    from intarsia.report.packages import check_report_packages
    from intarsia.report.page import HtmlReport

    check_report_packages()
    if output != DEFAULT_OUTPUT:
        refuse_to_replace(Path(output), source)
        check_writable(Path(output))
    console: Console = context.obj
    trust = Trust(untrusted, require_signature)
    if _is_database(source):
        if trust != TRUSTED:
            raise UsageError("--untrusted and --require-signature need an artifact")
        run = _read_database(source, model or "", console)
    else:
        if model is not None:
            raise UsageError("--model needs a database", help="an artifact contains one run")
        run = _read_artifact(Path(source), trust if profile else None)
    path = Path(f"{run.explanation.model}.html" if output == DEFAULT_OUTPUT else output)
    refuse_to_replace(path, source)
    HtmlReport(run).write(path)
    return written_report(path, run)


def written_report(path: Path, run: ReportSource) -> Report:
    """Return the report of the command: the file, and what could not be shown."""
    from intarsia.support.units import size_text

    size = path.stat().st_size
    lines = [f"wrote {path} ({size_text(size)}): open it in a browser"]
    if run.profile_gap:
        lines.append(f"without times of kernels: {run.profile_gap}")
    document = {"file": str(path), "bytes": size, "model": run.explanation.model, "gap": run.profile_gap}
    return Report(document, tuple(lines))


def _is_database(text: str) -> bool:
    if text.startswith(_SERVER):
        return True
    path = Path(text)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _read_database(source: str, model: str, console: Console) -> ReportSource:
    from intarsia.cli.arguments.database_path import open_database
    from intarsia.driver.report_sources import source_of_database

    with open_database(source, on_wait=console.note) as opened:
        return source_of_database(opened, source, model)


def _read_artifact(path: Path, trust: Trust | None) -> ReportSource:
    from intarsia.driver.report_sources import source_of_artifact

    return source_of_artifact(path, None if trust is None else trust.load)
