"""Profiles of programs, each by itself or two side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.support.units import NOTHING, duration_text

if TYPE_CHECKING:
    from intarsia.runtime.profile import Profile
    from intarsia.runtime.profile_comparison import ProfileSegment

_NUMERIC = frozenset({1, 2, 3})


def profile_blocks(profiles: Mapping[str, Profile], by: str = "node", top: int = 15) -> Iterator[Block]:
    """Yield the tables of profiles, each below the name of its program.

    Args:
        profiles: Profiles by the name of the program.
        by: Grouping of the rows (`Profile.groups`).
        top: Number of rows of each.
    """
    for name, profile in profiles.items():
        yield from (f"kernels of {name}:", profile.table(by, top), "")


def comparison_report(profiles: Mapping[str, Profile], top: int) -> Report:
    """Return two profiles side by side: the segments with the largest differences, in order of the model.

    Args:
        profiles: Two profiles by the name of the program.
        top: Number of segments that are shown.
    """
    from intarsia.runtime.profile_comparison import compare_profiles

    (first, before), (second, after) = profiles.items()
    segments = compare_profiles(before, after)
    ordered = sorted(segments, key=lambda item: -abs(item.seconds[1] - item.seconds[0]))
    shown = set(ordered[:top])
    rows = [_cells(item) for item in segments if item in shown]
    rest = ordered[top:]
    if rest:
        sums = [sum(item.seconds[position] for item in rest) for position in (0, 1)]
        rows.append((f"... {len(rest)} more", *_times(sums[0], sums[1]), "", ""))
    rows += [
        ("outside of kernels", *_times(before.overhead_seconds, after.overhead_seconds), "", ""),
        ("end to end", *_times(before.end_to_end_seconds, after.end_to_end_seconds), "", ""),
    ]
    headers = ("nodes", first, second, "ratio", f"kernels of {first}", f"kernels of {second}")
    notes = dict.fromkeys((*before.notes, *after.notes))
    document = {
        "programs": [{"program": name, **profile.to_json()} for name, profile in profiles.items()],
        "segments": [item.to_json() for item in segments],
    }
    return Report(document, (Table(headers, tuple(rows), _NUMERIC), *notes))


def _cells(segment: ProfileSegment) -> tuple[str, ...]:
    names = [", ".join(dict.fromkeys(item)) or NOTHING for item in segment.kernels]
    return (segment.name, *_times(*segment.seconds), *names)


def _times(first: float, second: float) -> tuple[str, str, str]:
    """Return two times and the second over the first."""
    ratio = f"{second / first:.2f}" if first > 0 and second > 0 else NOTHING
    return (_time(first), _time(second), ratio)


def _time(seconds: float) -> str:
    if seconds < 0:
        return f"-{duration_text(-seconds)}"
    return duration_text(seconds) if seconds else NOTHING
