"""Reports of `intarsia db`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.support.errors import UsageError
from intarsia.support.units import NOTHING, duration_text, error_text, size_text

if TYPE_CHECKING:
    from intarsia.measure.database import MeasureRecord, Statistics, WorkloadSummary
    from intarsia.target import Host

_SHORT: Final = 8
"""Number of characters of a digest that are shown."""


def find_workload(text: str, summaries: Sequence[WorkloadSummary]) -> WorkloadSummary:
    """Find the newest summary of a workload by its name or the beginning of its digest.

    Raises:
        UsageError: There is none, or there are several.
    """
    matching = [item for item in summaries if text and (item.workload.startswith(text) or item.name == text)]
    digests = sorted({summary.workload for summary in matching})
    if len(digests) > 1:
        listed = ", ".join(digest[: 2 * _SHORT] for digest in digests)
        raise UsageError(
            f"{text!r} matches {len(digests)} workloads", help=f"give more characters of {listed}"
        )
    if not matching:
        raise UsageError(f"there is no workload {text!r}", help="intarsia db list shows all workloads")
    return matching[0]


def find_host(text: str, summaries: Sequence[WorkloadSummary]) -> str:
    """Find the digest of a host by its beginning.

    Raises:
        UsageError: There is none, or there are several.
    """
    digests = sorted({summary.host for summary in summaries if text and summary.host.startswith(text)})
    if len(digests) == 1:
        return digests[0]
    subject = "several hosts have" if digests else "no host has"
    raise UsageError(f"{subject} a digest that begins with {text!r}", help="intarsia db list shows them")


def list_report(summaries: Sequence[WorkloadSummary], statistics: Statistics) -> Report:
    """Report every workload on every target and host, and the totals."""
    document = {
        "database": statistics.location,
        "schema_version": statistics.schema_version,
        "records": statistics.records,
        "errors": {error.value: count for error, count in statistics.by_error},
        "bytes": statistics.bytes,
        "workloads": [_summary_document(summary) for summary in summaries],
    }
    rows = tuple(
        (
            summary.workload[:_SHORT],
            summary.name,
            summary.target,
            summary.host[:_SHORT],
            str(summary.records),
            str(summary.failed),
            duration_text(summary.best),
            _time_text(summary.newest),
        )
        for summary in summaries
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
    """Report one workload: its hosts, and the outcomes of its candidates."""
    ended = Counter((record.target, record.host, record.error) for record in records)
    messages = {(record.target, record.host, record.error): record.result.message for record in records}
    best = {(record.target, record.host): record.cost for record in reversed(records) if record.is_ok}
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
    """Report the fastest candidates of a workload on a host.

    Args:
        summary: Summary of the workload.
        records: All records of the workload, by cost.
        host: Digest of the host.
        target: Target of the candidates; None for all targets.
        count: Maximum number of candidates.
    """
    fitting = [record for record in records if record.is_ok and (target is None or record.target == target)]
    on_host = [record for record in fitting if record.host == host]
    elsewhere = len(fitting) - len(on_host)
    shown = on_host[:count]
    document = {
        "workload": summary.workload,
        "name": summary.name,
        "host": host,
        "candidates": [_candidate_document(record) for record in shown],
        "on_other_hosts": elsewhere,
    }
    rows = tuple(
        (
            duration_text(record.cost),
            str(len(record.result.costs)),
            NOTHING if record.max_error is None else error_text(record.max_error),
            _time_text(record.timestamp),
            record.target,
            record.kind,
            record.trace,
        )
        for record in shown
    )
    headers = ("median", "repeats", "max error", "measured last (UTC)", "target", "kind", "trace")
    nothing = f"no candidate of {summary.name or summary.workload[:_SHORT]} works on host {host[:_SHORT]}"
    blocks: tuple[Block, ...] = (Table(headers, rows, frozenset({0, 1, 2})) if rows else nothing,)
    if elsewhere:
        note = f"{elsewhere} measured on other hosts are not comparable (--host DIGEST shows them)"
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
    except (
        ValueError,
        OverflowError,
        OSError,
    ):  # out of the calendar's range: imported records may contain any number
        return NOTHING
