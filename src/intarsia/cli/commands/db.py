"""`intarsia db`: what has been measured; to look at, to carry elsewhere, to tidy up."""

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
    str, typer.Argument(metavar="WORKLOAD", help="Its name, or the beginning of its digest: see db list.")
]


def list_workloads(context: typer.Context, database: Place = None) -> Report:
    """List the workloads, with how much is known of each on each target and host."""
    from intarsia.cli.reports.db_report import list_report

    with open_database(database, on_wait=context.obj.note) as opened:
        return list_report(opened.summaries(), opened.statistics())


def show_workload(context: typer.Context, workload: Workload, database: Place = None) -> Report:
    """Show a workload: who measured what of it, and why candidates failed."""
    from intarsia.cli.reports.db_report import find_workload, show_report

    with open_database(database, on_wait=context.obj.note) as opened:
        found = find_workload(workload, opened.summaries())
        records = opened.records_of(found.workload)
        hosts = {digest: opened.host(digest) for digest in sorted({record.host for record in records})}
        return show_report(found, records, hosts, opened.program(found.workload))


def top_candidates(
    context: typer.Context,
    workload: Workload,
    count: Annotated[int, typer.Option("--count", "-k", metavar="K", min=1, help="How many.")] = 10,
    target: Annotated[
        str | None, typer.Option("--target", metavar="TARGET", help="Of this target only.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host", metavar="DIGEST", help="Of another machine: see db list. This one if not given."
        ),
    ] = None,
    database: Place = None,
) -> Report:
    """Show the fastest candidates of a workload on this machine."""
    from intarsia.cli.reports.db_report import find_host, find_workload, top_report
    from intarsia.target import Target
    from intarsia.toolchain.this_host import this_host

    wanted = None if target is None else str(Target.parse(target))
    with open_database(database, on_wait=context.obj.note) as opened:
        summaries = opened.summaries()
        found = find_workload(workload, summaries)
        digest = this_host().digest if host is None else find_host(host, summaries)
        return top_report(found, opened.records_of(found.workload), digest, wanted, count)


def export_lines(
    context: typer.Context,
    output: Annotated[
        Path, typer.Argument(metavar="FILE", help="To be written, such as measurements.jsonl.")
    ],
    database: Place = None,
) -> Report:
    """Write all measurements as lines of JSON."""
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
    source: Annotated[Path, typer.Argument(metavar="FILE", help="That db export has written.")],
    database: Place = None,
) -> Report:
    """Add the measurements of an export: all of them, or none if a line is bad."""
    with open_database(database, create=True, on_wait=context.obj.note) as opened:
        return _merge_report(opened.import_lines(source), opened.place)


def merge_database(
    context: typer.Context,
    other: Annotated[str, typer.Argument(metavar="PLACE", help="File or URL of the other database.")],
    database: Place = None,
) -> Report:
    """Add the measurements of another database; merging it once more changes nothing."""
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
        typer.Option("--keep-top", metavar="N", min=0, help="Keep the N best of workload, target and host."),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Keep what was measured since: 90m, 12h, 30d, 8w."),
    ] = None,
    other_hosts: Annotated[
        bool, typer.Option("--other-hosts", help="Keep what was measured on this machine.")
    ] = False,
    database: Place = None,
) -> Report:
    """Remove measurements: those that none of the conditions keeps. At least one must be given."""
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


def _merge_report(counts: MergeCounts, place: str) -> Report:
    document = {
        "database": place,
        "added": counts.added,
        "updated": counts.updated,
        "skipped": counts.skipped,
    }
    text = f"{place}: {counts.added} added, {counts.updated} updated, {counts.skipped} already there"
    return Report(document, (text,))
