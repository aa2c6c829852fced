"""Picture of a front of programs, latency against error, as a file of SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any, Final

from intarsia.report.charts import colour_of, standalone_picture

_LEAST: Final = 1e-7
"""Error below which points stand at the lower edge: float32 has seven digits."""

_NARROW: Final = 0.3
"""Range of latencies in decades below which the axis is not logarithmic."""


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A program in the picture.

    Attributes:
        name: Text beside the point.
        toolchain: Name of the toolchain, which has a colour.
        seconds: Latency in seconds.
        error: Error of the program.
        series: Name of the line that it is on; points of a series are joined.
    """

    name: str
    toolchain: str
    seconds: float
    error: float
    series: str = ""


def front_picture(title: str, points: Sequence[ChartPoint]) -> str:
    """Return points by latency and error as SVG; each series is joined by a line.

    Args:
        title: Title of the picture.
        points: The points.

    Raises:
        UsageError: Matplotlib is not installed.
    """

    def draw(axes: Any) -> None:
        _draw(axes, title, points)

    return standalone_picture("front", draw)


def _draw(axes: Any, title: str, points: Sequence[ChartPoint]) -> None:
    scale, unit = (
        (1e3, "ms") if min((point.seconds for point in points), default=1.0) >= 1e-3 else (1e6, "us")
    )
    series: dict[str, list[ChartPoint]] = {}
    for point in points:
        series.setdefault(point.series, []).append(point)
    for number, (name, members) in enumerate(series.items()):
        ordered = sorted(members, key=lambda point: point.seconds)
        across = [point.seconds * scale for point in ordered]
        errors = [max(point.error, _LEAST) for point in ordered]
        style = ("-", "--", ":", "-.")[number % 4]
        axes.plot(across, errors, style, color=colour_of(None), linewidth=0.8, zorder=1, label=name or None)
        for point, left, error in zip(ordered, across, errors, strict=True):
            axes.plot([left], [error], "o", color=colour_of(point.toolchain), markersize=5, zorder=3)
            axes.annotate(
                point.name, (left, error), xytext=(5, 4), textcoords="offset points", fontsize=7, zorder=4
            )
    if len(series) > 1:
        axes.legend(frameon=False, fontsize=8)
    times = [point.seconds for point in points]
    if times and log10(max(times) / min(times)) > _NARROW:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"latency in {unit}")
    axes.set_ylabel("largest error, relative to the largest value")
    axes.set_title(title, fontsize=9, loc="left")
    axes.margins(x=0.12, y=0.12)
