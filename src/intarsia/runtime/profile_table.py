"""Profiles as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

_TIMES: Final = ((1e-3, "ms"), (1e-6, "us"))
_SHORT: Final = 1e-2
"""Seconds from which times are shown in milliseconds."""
_PREFIXES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_NOTHING: Final = "-"


class ProfileGrouping(StrEnum):
    """The rows of a profile that are added up."""

    NODE = "node"
    KERNEL = "kernel"
    MODULE = "module"
    OPERATOR = "operator"


_DETAILS: Final = {ProfileGrouping.NODE: "kernel", ProfileGrouping.KERNEL: "nodes"}
"""Header of the last column."""


@dataclass(frozen=True, slots=True)
class ProfileGroup:
    """Rows of a profile that are added up.

    Attributes:
        toolchain: Names of the toolchains.
        name: Name of the group.
        detail: Names of the kernels or nodes in it.
        calls: Number of calls.
        seconds: Total seconds.
        share: Share of the time of the run, 0 to 1.
        flop: Floating-point operations; None if they are not known.
        bytes: Bytes that are read and written; None if they are not known.
        bound: Least seconds by the roofline; None if they are not known.
        counters: Counts of hardware events by name; empty if they are not known.
    """

    toolchain: str
    name: str
    detail: str
    calls: float
    seconds: float
    share: float
    flop: float | None
    bytes: float | None
    bound: float | None
    counters: Mapping[str, float] = field(default_factory=dict)

    @property
    def of_roofline(self) -> float | None:
        """Share of the roofline that is reached, 0 to 1; None if it is not known."""
        if self.bound is None or self.seconds <= 0:
            return None
        return min(1.0, self.bound / self.seconds)


def profile_table(
    groups: Sequence[ProfileGroup],
    by: ProfileGrouping,
    top: int | None,
    totals: Mapping[str, float],
    notes: Sequence[str] = (),
) -> str:
    """Return a table of groups, the sum of those that are left out, and totals.

    Args:
        groups: Groups, the most expensive first.
        by: Grouping, for the header.
        top: Number of groups that are shown; None for all.
        totals: Seconds by what they are of, below the table.
        notes: Sentences below the totals.
    """
    longest = max(totals.values(), default=0.0)
    scale, unit = _TIMES[0] if longest >= _SHORT else _TIMES[1]
    shown, rest = groups[:top], groups[len(groups[:top]) :]
    detail = _DETAILS.get(by, "kernels")
    events = tuple(dict.fromkeys(name for group in groups for name in group.counters))
    lines: list[tuple[str, ...]] = [
        ("time", "share", "calls", "FLOP", "bytes", "roofline", *events, "toolchain", str(by), detail)
    ]
    lines += [_cells(group, scale, unit, events) for group in shown]
    if rest:
        seconds, share = sum(group.seconds for group in rest), sum(group.share for group in rest)
        numbers = (f"{seconds / scale:.1f} {unit}", f"{share:.1%}", *[""] * (4 + len(events)))
        lines.append((*numbers, f"... {len(rest)} more", "", ""))
    sums = {name: f"{seconds / scale:.1f} {unit}" for name, seconds in totals.items()}
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    widths[0] = max(widths[0], *map(len, sums.values()))
    numeric = 6 + len(events)  # the first columns are numbers, aligned to the right
    table = [
        "  ".join(
            cell.rjust(width) if column < numeric else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join(
        (*table, "", *(f"{text.rjust(widths[0])}  {name}" for name, text in sums.items()), *notes)
    )


def _cells(group: ProfileGroup, scale: float, unit: str, events: Sequence[str]) -> tuple[str, ...]:
    share = group.of_roofline
    return (
        f"{group.seconds / scale:.1f} {unit}",
        f"{group.share:.1%}",
        f"{group.calls:g}",
        amount_text(group.flop or None),
        amount_text(group.bytes, "B"),
        _NOTHING if share is None else f"{share:.0%}",
        *(amount_text(group.counters.get(name)) for name in events),
        group.toolchain,
        group.name,
        group.detail,
    )


def amount_text(value: float | None, unit: str = "") -> str:
    """Format a number with three digits and a prefix of a thousand: 12.3 MB."""
    if value is None:
        return _NOTHING
    scale, prefix = next(((scale, prefix) for scale, prefix in _PREFIXES if value >= scale), (1.0, ""))
    return f"{value / scale:.3g} {prefix}{unit}".rstrip()
