"""Where the time of a program goes: a row for each kernel at its place in the program."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeAlias

from intarsia.runtime.chrome_trace import TraceSlice, chrome_trace
from intarsia.runtime.kernel_profiler import ProfiledKernel
from intarsia.runtime.profile_table import ProfileGroup, ProfileGrouping, profile_table
from intarsia.support.errors import UsageError
from intarsia.support.files import write_text

Nanoseconds: TypeAlias = Callable[[], int]
"""A clock: a function that returns the time in nanoseconds."""

_MOST_ROWS = 15
"""Number of rows of a printed profile."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """A kernel at its place in the program, in one run of the program.

    Attributes:
        toolchain: Name of the toolchain whose kernel it is; "copy" for copies between devices.
        part: Name of the kernel of the plan (`Executable.kernel_names`) that it belongs to.
        kernel: Its name, nodes and work.
        calls: Number of its calls.
        seconds: Total seconds of its calls.
        position: Number of the kernel of the plan, and index of the kernel inside it; -1 for all of it.
        counters: Counts of hardware events of all calls, by name; None if they are not known.
    """

    toolchain: str
    part: str
    kernel: ProfiledKernel
    calls: float
    seconds: float
    position: tuple[int, int] = (-1, -1)
    counters: Mapping[str, float] | None = None

    @property
    def flop(self) -> float | None:
        """Floating-point operations of all calls; None if they are not known."""
        return None if self.kernel.work is None else self.kernel.work.flop * self.calls

    @property
    def bytes(self) -> float | None:
        """Bytes that all calls read and write; None if they are not known."""
        return None if self.kernel.work is None else self.kernel.work.bytes * self.calls

    @property
    def bound(self) -> float | None:
        """Least seconds of all calls by the roofline; None if they are not known."""
        work = self.kernel.work
        return None if work is None or work.bound is None else work.bound * self.calls

    @property
    def label(self) -> str:
        """The anchor with the number of the other nodes, or what it does if it computes no node."""
        kernel = self.kernel
        if kernel.anchor is not None:
            others = len(kernel.nodes) - 1
            return f"{kernel.anchor.name} (+{others})" if others else kernel.anchor.name
        return "(layout conversion)" if kernel.is_conversion else self.part


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of a program goes.

    Times are means over the fastest quarter of the runs, so that rows and the time outside of kernels add up
    to the time of a run, and runs that other processes disturb are left out.

    Attributes:
        rows: Kernels at their places, in the order in which they run.
        seconds: Seconds of a profiled run of the program, without the check of its inputs.
        overhead_seconds: Seconds of that outside of kernels.
        end_to_end_seconds: Seconds of a run of the program without profiling.
        repeats: Number of runs of each kind.
        slices: One profiled run for a trace.
        notes: Sentences about limits of the engines' profilers.
    """

    rows: tuple[ProfileRow, ...]
    seconds: float
    overhead_seconds: float
    end_to_end_seconds: float
    repeats: int
    slices: tuple[TraceSlice, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    @property
    def kernel_seconds(self) -> float:
        """Seconds of all kernels; several devices at work at the same time may exceed `seconds`."""
        return sum(row.seconds for row in self.rows)

    def groups(self, by: ProfileGrouping | str = ProfileGrouping.NODE) -> tuple[ProfileGroup, ...]:
        """Return the rows grouped, the most expensive group first.

        Args:
            by: "node" for the places with the same nodes together, "kernel" for those with the same code,
                "module" for the path of the anchors' names, "operator" for their operators.

        Raises:
            UsageError: There is no such grouping.
        """
        try:
            grouping = ProfileGrouping(by)
        except ValueError:
            choices = ", ".join(ProfileGrouping)
            raise UsageError(f"profiles are not grouped by {by!r}", help=f"choose one of {choices}") from None
        members: dict[tuple[str, ...], list[ProfileRow]] = {}
        for number, row in enumerate(self.rows):
            members.setdefault(_group_key(row, grouping, number), []).append(row)
        groups = [_group(rows, grouping, self.seconds) for rows in members.values()]
        return tuple(sorted(groups, key=lambda group: -group.seconds))

    def table(self, by: ProfileGrouping | str = ProfileGrouping.NODE, top: int | None = _MOST_ROWS) -> str:
        """Return a table, the most expensive rows first.

        Args:
            by: Grouping of the rows, as for `groups`.
            top: Number of rows that are shown; None for all.
        """
        return profile_table(
            self.groups(by),
            ProfileGrouping(by),
            top,
            {
                "kernels": self.kernel_seconds,
                "outside of kernels": self.overhead_seconds,
                f"profiled run, mean of the fastest quarter of {self.repeats}": self.seconds,
                "end to end without profiling": self.end_to_end_seconds,
            },
            self.notes,
        )

    def __str__(self) -> str:
        """Return the table of the most expensive kernels."""
        return self.table()

    def to_json(self) -> dict[str, object]:
        """Return the profile as plain values; times in seconds."""
        return {
            "kernels": [_row_record(row, self.seconds) for row in self.rows],
            "seconds": self.seconds,
            "overhead_seconds": self.overhead_seconds,
            "end_to_end_seconds": self.end_to_end_seconds,
            "repeats": self.repeats,
            "notes": list(self.notes),
        }

    def to_chrome_trace(self) -> str:
        """Return one profiled run as JSON of Chrome's trace event format.

        There is a row for each device, and for each worker thread of native kernels.
        """
        return chrome_trace(self.slices)

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Write one profiled run as a file for Perfetto or chrome://tracing.

        Raises:
            OutputError: The file cannot be written.
        """
        write_text(Path(path), self.to_chrome_trace())


def _group_key(row: ProfileRow, by: ProfileGrouping, number: int) -> tuple[str, ...]:
    anchor = row.kernel.anchor
    match by:
        case ProfileGrouping.NODE:
            nodes = (f"{node.name} {node.operator}" for node in row.kernel.nodes)
            return (row.toolchain, *nodes) if row.kernel.nodes else (str(number),)
        case ProfileGrouping.KERNEL:
            return row.toolchain, row.kernel.name
        case ProfileGrouping.MODULE:
            return (row.label if anchor is None else anchor.module,)
        case ProfileGrouping.OPERATOR:
            return (row.label if anchor is None else anchor.operator,)


def _group(rows: list[ProfileRow], by: ProfileGrouping, whole: float) -> ProfileGroup:
    first, anchor = rows[0], rows[0].kernel.anchor
    others = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    if by is ProfileGrouping.KERNEL:
        name, detail = first.kernel.name, first.label + others
    elif by is ProfileGrouping.NODE or anchor is None:
        name, detail = first.label, first.kernel.name + others
    else:
        name = anchor.operator if by is ProfileGrouping.OPERATOR else anchor.module or "(no module)"
        detail = f"{len(rows)} kernel{'' if len(rows) == 1 else 's'}"
    seconds = sum(row.seconds for row in rows)
    return ProfileGroup(
        ", ".join(dict.fromkeys(row.toolchain for row in rows)),
        name,
        detail,
        sum(row.calls for row in rows),
        seconds,
        seconds / whole if whole else 0.0,
        _total([row.flop for row in rows]),
        _total([row.bytes for row in rows]),
        _total([row.bound for row in rows]),
        _total_counts([row.counters for row in rows]),
    )


def _total_counts(counts: list[Mapping[str, float] | None]) -> dict[str, float]:
    """Return the sums by event; empty if those of a row are not known."""
    present = [item for item in counts if item is not None]
    if len(present) < len(counts):
        return {}
    return {name: sum(item.get(name, 0.0) for item in present) for name in present[0]}


def _total(values: list[float | None]) -> float | None:
    """Return the sum; None if a value is not known."""
    present = [value for value in values if value is not None]
    return sum(present) if len(present) == len(values) else None


def _row_record(row: ProfileRow, whole: float) -> dict[str, object]:
    kernel = row.kernel
    return {
        "toolchain": row.toolchain,
        "part": row.part,
        "kernel": kernel.name,
        "nodes": [asdict(node) for node in kernel.nodes],
        "anchor": None if kernel.anchor is None else kernel.anchor.name,
        "is_conversion": kernel.is_conversion,
        "calls": row.calls,
        "seconds": row.seconds,
        "share": row.seconds / whole if whole else 0.0,
        "flop": row.flop,
        "bytes": row.bytes,
        "bound_seconds": row.bound,
        "counters": None if row.counters is None else dict(row.counters),
    }
