"""Report of `intarsia opt`: what the instruments saw, and the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intarsia.cli.reports.report import Block
from intarsia.cli.reports.table import Table
from intarsia.support.units import NOTHING

if TYPE_CHECKING:
    from intarsia.driver.reproducer.pass_failure import PassFailure
    from intarsia.driver.reproducer.reduce import Reduction
    from intarsia.transform.instrument import PassStatistic

HEADERS = ("pass", "program", "operators", "constants", "what changed")


def statistics_table(runs: list[PassStatistic]) -> Table:
    """Return a table with a row for each innermost pass."""
    rows = [
        (
            run.name,
            "changed" if run.is_changed else "unchanged",
            _counts(run.before.operators.total(), run.after.operators.total()),
            _counts(run.before.constant_bytes, run.after.constant_bytes),
            run.change or NOTHING,
        )
        for run in runs
        if run.is_innermost
    ]
    return Table(HEADERS, tuple(rows), frozenset({2, 3}))


def _counts(before: int, after: int) -> str:
    return str(after) if before == after else f"{before} -> {after}"


def statistics_records(runs: list[PassStatistic]) -> list[dict[str, Any]]:
    """Return the statistics as plain data."""
    return [
        {
            "name": run.name,
            "changed": run.is_changed,
            "innermost": run.is_innermost,
            "operators": [run.before.operators.total(), run.after.operators.total()],
            "constant_bytes": [run.before.constant_bytes, run.after.constant_bytes],
            "removed": dict(run.removed),
            "added": dict(run.added),
        }
        for run in runs
    ]


def failure_record(failure: PassFailure) -> dict[str, Any]:
    """Return a failure as plain data."""
    return {"pass": failure.pass_name, "kind": failure.kind.value, "text": failure.text}


def reduction_blocks(reduction: Reduction, before: int, files: str) -> tuple[Block, ...]:
    """Return a reduced program, and where it is."""
    count = f"{before} -> {reduction.operators} operators in {reduction.checks} checks"
    return (str(reduction.failure), count, "", str(reduction.mod).rstrip(), "", f"wrote {files}")
