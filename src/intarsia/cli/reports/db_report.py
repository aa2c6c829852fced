"""What `intarsia db` shows of a database."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.cli.reports.units import NOTHING, duration_text, error_text, size_text
from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from intarsia.measure.database import MeasureRecord, Statistics, WorkloadSummary
    from intarsia.target import Host

_SHORT: Final = 8
"""Characters of a digest that are shown."""


def find_workload(text: str, summaries: Sequence[WorkloadSummary]) -> WorkloadSummary:
    """The newest summary of the workload with that name or beginning of its digest.

    Raises:
        UsageError: There is none, or several.
    """
    found = [each for each in summaries if text and (each.workload.startswith(text) or each.name == text)]
    digests = sorted({each.workload for each in found})
    if len(digests) > 1:
        listed = ", ".join(digest[: 2 * _SHORT] for digest in digests)
        raise UsageError(f"{text!r} may be {len(digests)} workloads", help=f"write more of one of {listed}")
    if not found:
        raise UsageError(f"there is no workload {text!r}", help="intarsia db list shows what there is")
    return found[0]


def find_host(text: str, summaries: Sequence[WorkloadSummary]) -> str:
    """The digest of the host with that beginning of it.

    Raises:
        UsageError: There is none, or several.
    """
    digests = sorted({each.host for each in summaries if text and each.host.startswith(text)})
    if len(digests) == 1:
        return digests[0]
    found = "several hosts have" if digests else "no host has"
    raise UsageError(f"{found} a digest that begins with {text!r}", help="intarsia db list shows them")


def list_report(summaries: Sequence[WorkloadSummary], statistics: Statistics) -> Report:
    """Every workload on every target and host, and how much there is in all."""
    document = {
        "database": statistics.location,
        "schema_version": statistics.schema_version,
        "records": statistics.records,
        "errors": {error.value: count for error, count in statistics.by_error},
        "bytes": statistics.bytes,
        "workloads": [_summary_document(each) for each in summaries],
    }
    rows = tuple(
        (
            each.workload[:_SHORT],
            each.name,
            each.target,
            each.host[:_SHORT],
            str(each.records),
            str(each.failed),
            duration_text(each.best),
            _time_text(each.newest),
        )
        for each in summaries
    )
    headers = ("workload", "name", "target", "host", "candidates", "failed", "best", "measured last (UTC)")
    total = f"{statistics.location}: {statistics.records} records, {size_text(statistics.bytes)}"
    return Report(document, (Table(headers, rows, frozenset({4, 5, 6})), total) if rows else (total,))


def show_report(
    summary: WorkloadSummary,
    records: Sequence[MeasureRecord],
    hosts: Mapping[str, Host | None],
    program: str | None,
) -> Report:
    """One workload: its hosts, and how its candidates ended."""
    ended = Counter((record.target, record.host, record.error) for record in records)
    messages = {(each.target, each.host, each.error): each.result.message for each in records}
    best = {(each.target, each.host): each.cost for each in reversed(records) if each.is_ok}
    keys = sorted(ended)
    document = {
        "workload": summary.workload,
        "name": summary.name,
        "program": program,
        "hosts": {digest: None if host is None else host.to_json() for digest, host in hosts.items()},
        "candidates": [
            {
                "target": target,
                "host": host,
                "error": error.value,
                "count": ended[target, host, error],
                "example": messages[target, host, error],
                "best_seconds": best.get((target, host)) if error == "ok" else None,
            }
            for target, host, error in keys
        ],
    }
    rows = tuple(
        (
            target,
            host[:_SHORT],
            error.value,
            str(ended[target, host, error]),
            duration_text(best.get((target, host), math.inf)) if error == "ok" else NOTHING,
            messages[target, host, error],
        )
        for target, host, error in keys
    )
    table = Table(("target", "host", "result", "candidates", "best", "example"), rows, frozenset({3, 4}))
    machines = tuple(
        f"host {digest[:_SHORT]}: {'unknown' if host is None else f'{host.cpu_model}, {host.cores} cores'}"
        for digest, host in hosts.items()
    )
    blocks: tuple[Block, ...] = (f"{summary.workload} {summary.name}".rstrip(), table, *machines)
    return Report(document, blocks if program is None else (*blocks, "", program.rstrip()))


def top_report(
    summary: WorkloadSummary, records: Sequence[MeasureRecord], host: str, target: str | None, count: int
) -> Report:
    """The fastest candidates on a host.

    Args:
        summary: Of the workload.
        records: All of the workload, by cost.
        host: Digest of the host.
        target: Only of that target, if given.
        count: At most so many.
    """
    fitting = [each for each in records if each.is_ok and (target is None or each.target == target)]
    here = [each for each in fitting if each.host == host]
    elsewhere = len(fitting) - len(here)
    shown = here[:count]
    document = {
        "workload": summary.workload,
        "name": summary.name,
        "host": host,
        "candidates": [_candidate_document(each) for each in shown],
        "on_other_hosts": elsewhere,
    }
    rows = tuple(
        (
            duration_text(each.cost),
            str(len(each.result.costs)),
            NOTHING if each.max_error is None else error_text(each.max_error),
            _time_text(each.timestamp),
            each.target,
            each.kind,
            each.trace,
        )
        for each in shown
    )
    headers = ("median", "repeats", "max error", "measured last (UTC)", "target", "kind", "trace")
    nothing = f"no candidate of {summary.name or summary.workload[:_SHORT]} works on host {host[:_SHORT]}"
    blocks: tuple[Block, ...] = (Table(headers, rows, frozenset({0, 1, 2})) if rows else nothing,)
    if elsewhere:
        note = f"{elsewhere} measured on other hosts say nothing of this one (--host DIGEST shows them)"
        blocks = (*blocks, note)
    return Report(document, blocks)


def _summary_document(summary: WorkloadSummary) -> dict[str, object]:
    return {
        "workload": summary.workload,
        "name": summary.name,
        "target": summary.target,
        "host": summary.host,
        "candidates": summary.records,
        "failed": summary.failed,
        "best_seconds": summary.best,
        "measured_last": summary.newest,
    }


def _candidate_document(record: MeasureRecord) -> dict[str, object]:
    return {
        "median_seconds": record.cost,
        "costs": list(record.result.costs),
        "max_error": record.max_error,
        "measured_last": record.timestamp,
        "target": record.target,
        "kind": record.kind,
        "trace": record.candidate.trace,
        "digest": record.candidate_digest,
    }


def _time_text(timestamp: float) -> str:
    try:
        return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):  # no year that a calendar has: imported from anywhere
        return NOTHING
