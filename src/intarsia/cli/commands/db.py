"""`intarsia db`: show, exchange and prune stored measurements."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from intarsia.cli.arguments.age import parse_age
from intarsia.cli.arguments.database_path import Place, open_database
from intarsia.cli.reports.report import Report

if TYPE_CHECKING:
    from intarsia.measure.database import MergeCounts

Workload = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD", help="Name of a workload, or the beginning of its digest (see intarsia db list)."
    ),
]


def list_workloads(context: typer.Context, database: Place = None) -> Report:
    """List the workloads, with the measurements of each target and host."""
    from intarsia.cli.reports.db_report import list_report

    with open_database(database, on_wait=context.obj.note) as opened:
        return list_report(opened.summaries(), opened.statistics())


def show_workload(context: typer.Context, workload: Workload, database: Place = None) -> Report:
    """Show a workload: its measurements by target and host, and why candidates failed."""
    from intarsia.cli.reports.db_report import find_workload, show_report

    with open_database(database, on_wait=context.obj.note) as opened:
        summary = find_workload(workload, opened.summaries())
        records = opened.records_of(summary.workload)
        hosts = {digest: opened.host(digest) for digest in sorted({record.host for record in records})}
        return show_report(summary, records, hosts, opened.program(summary.workload))


def top_candidates(
    context: typer.Context,
    workload: Workload,
    count: Annotated[
        int, typer.Option("--count", "-k", metavar="K", min=1, help="Maximum number of candidates.")
    ] = 10,
    target: Annotated[
        str | None, typer.Option("--target", metavar="TARGET", help="Only candidates of this target.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="DIGEST",
            help="Candidates of another machine (see intarsia db list). [default: this machine]",
        ),
    ] = None,
    database: Place = None,
) -> Report:
    """Show the fastest candidates of a workload on this machine."""
    from intarsia.cli.reports.db_report import find_host, find_workload, top_report
    from intarsia.target import Target
    from intarsia.toolchain.this_host import this_host

    target_filter = None if target is None else str(Target.parse(target))
    with open_database(database, on_wait=context.obj.note) as opened:
        summaries = opened.summaries()
        summary = find_workload(workload, summaries)
        digest = this_host().digest if host is None else find_host(host, summaries)
        return top_report(summary, opened.records_of(summary.workload), digest, target_filter, count)


def export_lines(
    context: typer.Context,
    output: Annotated[Path, typer.Argument(metavar="FILE", help="Output file, such as measurements.jsonl.")],
    database: Place = None,
) -> Report:
    """Export all measurements as JSON lines."""
    from intarsia.cli.arguments.output import check_writable

    check_writable(output)
    with open_database(database, on_wait=context.obj.note) as opened:
        counts = opened.export_lines(output)
    document = {
        "file": str(output),
        "records": counts.records,
        "workloads": counts.workloads,
        "hosts": counts.hosts,
    }
    return Report(document, (f"wrote {output} (records: {counts.records})",))


def import_lines(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="File that intarsia db export has written.")],
    database: Place = None,
) -> Report:
    """Import measurements: all of them, or none if a line is invalid."""
    with open_database(database, create=True, on_wait=context.obj.note) as opened:
        return _merge_report(opened.import_lines(source), opened.place)


def merge_database(
    context: typer.Context,
    other: Annotated[str, typer.Argument(metavar="PLACE", help="File or URL of the other database.")],
    database: Place = None,
) -> Report:
    """Merge the measurements of another database; merging it again changes nothing."""
    from intarsia.measure.database import Database

    note = context.obj.note
    with (
        Database.open(other, create=False, on_wait=note) as source,
        open_database(database, create=True, on_wait=note) as opened,
    ):
        return _merge_report(opened.merge(source), opened.place)


def collect_garbage(
    context: typer.Context,
    keep_top: Annotated[
        int | None,
        typer.Option(
            "--keep-top", metavar="N", min=0, help="Keep the N best of each workload, target and host."
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="AGE", help="Keep measurements younger than this: 90m, 12h, 30d, 8w."
        ),
    ] = None,
    other_hosts: Annotated[
        bool, typer.Option("--other-hosts", help="Keep the measurements of this machine.")
    ] = False,
    database: Place = None,
) -> Report:
    """Remove measurements that none of the given conditions keeps; at least one condition is needed."""
    from intarsia.toolchain.this_host import this_host

    with open_database(database, on_wait=context.obj.note) as opened:
        removed = opened.collect_garbage(
            keep_top=keep_top,
            older_than=None if older_than is None else time.time() - parse_age(older_than),
            other_hosts=this_host().digest if other_hosts else None,
        )
        left = opened.statistics().records
    document = {
        "removed": {"records": removed.records, "workloads": removed.workloads, "hosts": removed.hosts},
        "records": left,
    }
    return Report(document, (f"removed {removed.records} records; {left} are left",))


def _merge_report(counts: MergeCounts, location: str) -> Report:
    document = {
        "database": location,
        "added": counts.added,
        "updated": counts.updated,
        "skipped": counts.skipped,
    }
    text = f"{location}: {counts.added} added, {counts.updated} updated, {counts.skipped} already there"
    return Report(document, (text,))
