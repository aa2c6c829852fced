"""Results of the schedule search, as a table and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from intarsia.cli.reports.table import Table
from intarsia.support.units import NOTHING, duration_text

if TYPE_CHECKING:
    from intarsia.autoschedule.tuning.schedule_records import ScheduleProgress, ScheduleRow
    from intarsia.measure.measure_result import MeasureError

HEADERS: Final = (
    "kernel",
    "calls",
    "schedules",
    "failed",
    "default",
    "best",
    "GFLOP/s",
    "of peak",
    "chosen",
)
NUMERIC: Final = frozenset({1, 2, 4, 5, 6, 7})


def schedule_tables(rows: Sequence[ScheduleRow]) -> tuple[Table, ...]:
    """Return a table of the kernels that were searched, if there are any."""
    searched = [row for row in rows if not row.reason]
    return (Table(HEADERS, tuple(map(_cells, searched)), NUMERIC),) if searched else ()


def schedule_lines(rows: Sequence[ScheduleRow]) -> list[str]:
    """Return a line with the total gain of the kernels, and one with why others were not searched."""
    if not rows:
        return []
    measured = [row for row in rows if row.default_seconds is not None and row.seconds is not None]
    before = sum(row.weight * (row.default_seconds or 0.0) for row in measured)
    after = sum(
        row.weight * ((row.seconds if row.is_chosen else row.default_seconds) or 0.0) for row in measured
    )
    chosen = sum(row.is_chosen for row in rows)
    trials = sum(row.trials for row in rows)
    gain = f": {duration_text(before)} of a run become {duration_text(after)}" if chosen else ""
    reasons = Counter(_reason_kind(row.reason) for row in rows if row.reason)
    left = "; ".join(f"{count} because {reason}" for reason, count in reasons.most_common())
    return [
        f"schedules: {trials} measured, faster ones for {chosen} of {len(rows)} kernels{gain}",
        *([f"kernels that were not searched: {left}"] if left else []),
    ]


def _reason_kind(reason: str) -> str:
    """Return a reason without its numbers, so that kernels with the same one are counted together."""
    return reason.partition(":")[0]


def schedule_text(progress: ScheduleProgress) -> str:
    """Describe the progress of a kernel: name, number of schedules, best, speed, and failures."""
    row = progress.row
    best = "" if row.seconds is None else f"best {duration_text(row.seconds)}"
    default = "" if row.default_seconds is None else f"default {duration_text(row.default_seconds)}"
    speed = "" if row.flop_per_second is None else f"{row.flop_per_second / 1e9:.1f} GFLOP/s"
    share = "" if row.share_of_peak is None else f"{row.share_of_peak:.0%} of peak"
    failed = f"{sum(row.failed.values())} failed ({_kinds(row.failed)})" if row.failed else ""
    count = f"{row.trials} schedule{'s' if row.trials != 1 else ''}"
    return ", ".join(part for part in (row.name, count, best, default, speed, share, failed) if part)


def _cells(row: ScheduleRow) -> tuple[str, ...]:
    return (
        row.name,
        str(row.weight),
        str(row.trials),
        _kinds(row.failed) or NOTHING,
        NOTHING if row.default_seconds is None else duration_text(row.default_seconds),
        NOTHING if row.seconds is None else duration_text(row.seconds),
        NOTHING if row.flop_per_second is None else f"{row.flop_per_second / 1e9:.1f}",
        NOTHING if row.share_of_peak is None else f"{row.share_of_peak:.0%}",
        "yes" if row.is_chosen else "",
    )


def _kinds(failed: Mapping[MeasureError, int]) -> str:
    return ", ".join(kind.value if count == 1 else f"{count} {kind.value}" for kind, count in failed.items())
