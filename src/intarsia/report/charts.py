"""Charts with axes, as SVG in the colours of the page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan, sqrt
from typing import Any, Final

from intarsia.report.packages import report_package
from intarsia.report.run_records import TrialRecord
from intarsia.report.toolchain_colours import OTHER, toolchain_class
from intarsia.runtime.profile import Profile, ProfileRow

_COLOURS: Final = {
    "ink": "#010101",
    "faint": "#020202",
    **{f"t{number}": f"#0303{number:02x}" for number in range(7)},
}
"""Colours that stand in the drawing for variables of the page, which differ between light and dark."""

_FILE_COLOURS: Final = {
    "ink": "#1d2126",
    "faint": "#a9aeb4",
    **dict(
        zip(
            (f"t{number}" for number in range(7)),
            ("#2a6fbb", "#c4622d", "#2f8f5b", "#8e4fa8", "#7d7466", "#b0356c", "#9aa0a6"),
            strict=True,
        )
    ),
}
"""The colours of the light page, for pictures in files of their own."""

_SIZES: Final = {"wide": (7.2, 3.6), "narrow": (3.6, 3.4)}
"""Inches of the two forms of a chart; the page shows the one that fits its width."""

_MIX: Final = "collage"
"""Kind of candidates with several toolchains, which have a colour of their own."""

_MARKERS: Final = {"whole": "o", "as it is": "o", _MIX: "D", "tuned": "^"}
"""Marker of each kind of candidate for a whole program."""

_ONE_DECADE: Final = 6.0
"""Ratio of the ends of an axis below which every tick has a text."""

_FEW_DECADES: Final = 50.0
"""Ratio of the ends of an axis below which 2 and 5 of each decade have a text."""

_DEFINED: Final = re.compile(r' id="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart in two widths, as SVG without a declaration.

    Attributes:
        wide: For screens and paper.
        narrow: For phones.
    """

    wide: str
    narrow: str


def roofline_chart(profile: Profile) -> Chart | str:
    """Return the kernels of a profile by arithmetic intensity and rate, each below its roof.

    The roof of a kernel is its rate at the least time that the machine model allows for its operations and
    bytes; so the roof of a kernel does not depend on the element types of others.

    Args:
        profile: Profile of a program.

    Returns:
        The chart, or a sentence on why there is none.
    """
    rows = [row for row in profile.rows if row.flop and row.bytes and row.bound and row.seconds > 0]
    if not rows:
        return "No kernel of the winner reports its operations and bytes, so that there is no roofline."

    def draw(axes: Any) -> None:
        _draw_roofline(axes, rows, profile.kernel_seconds)

    return _chart("roofline", draw)


def history_chart(trials: Sequence[TrialRecord], workload: str) -> Chart | str:
    """Return the latency of measured whole programs over the time of the run, and the best.

    Args:
        trials: Measurements of a run in order.
        workload: Digest of the model.

    Returns:
        The chart, or a sentence on why there is none.
    """
    whole = [trial for trial in trials if trial.workload == workload and trial.kind in _MARKERS]
    if not any(trial.cost for trial in whole):
        return "The measurements of the run are not recorded, so that there is no history."

    def draw(axes: Any) -> None:
        _draw_history(axes, trials, whole)

    return _chart("history", draw)


def _draw_roofline(axes: Any, rows: Sequence[ProfileRow], total: float) -> None:
    points = [
        (flop / size, flop / row.seconds / 1e9, flop / bound / 1e9, row)
        for row in rows
        if (flop := row.flop) and (size := row.bytes) and (bound := row.bound)
    ]
    lines = [
        (x, y) for across, rate, roof, _ in points for x, y in ((across, rate), (across, roof), (nan, nan))
    ]
    axes.plot(*zip(*lines, strict=True), color=_COLOURS["faint"], linewidth=0.6, zorder=1)
    across_all, roofs = [point[0] for point in points], [point[2] for point in points]
    axes.plot(across_all, roofs, "_", color=_COLOURS["ink"], markersize=7, zorder=2)
    # One call for each size and colour: the drawing then repeats a marker by name, 60 bytes a kernel.
    groups: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for across, rate, _, row in points:
        size = round(sqrt(12 + 240 * row.seconds / total))
        groups.setdefault((toolchain_class(row.toolchain), size), []).append((across, rate))
    for (colour, size), members in groups.items():
        style = {"color": _COLOURS[colour], "alpha": 0.75, "markersize": size, "markeredgewidth": 0}
        axes.plot(*zip(*members, strict=True), "o", zorder=3, **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte")
    axes.set_ylabel("GFLOP/s")


def _draw_history(axes: Any, trials: Sequence[TrialRecord], whole: Sequence[TrialRecord]) -> None:
    costs = [(trial, trial.cost) for trial in whole if trial.cost is not None]
    scale, unit = (1e3, "ms") if min(cost for _, cost in costs) >= 1e-3 else (1e6, "us")
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    line: list[tuple[float, float]] = []
    for trial, cost in costs:
        toolchain = trial.target.partition("-toolchain=")[2].partition(" ")[0]
        colour = OTHER if trial.kind == _MIX else toolchain_class(toolchain)
        key = _COLOURS[colour], _MARKERS[trial.kind]
        groups.setdefault(key, []).append((trial.at, cost * scale))
        if not line or cost * scale < line[-1][1]:
            line += [*([(trial.at, line[-1][1])] if line else []), (trial.at, cost * scale)]
    for (colour, marker), points in groups.items():
        axes.scatter(*zip(*points, strict=True), s=26, color=colour, marker=marker, linewidths=0, zorder=3)
    line.append((trials[-1].at, line[-1][1]))
    axes.plot(*zip(*line, strict=True), color=_COLOURS["ink"], linewidth=1.2, zorder=2)
    edge = axes.get_xaxis_transform()  # heights as shares of the chart
    failed = [trial.at for trial in whole if trial.cost is None]
    axes.plot(failed, [0.97] * len(failed), "x", color=_COLOURS["ink"], markersize=5, transform=edge)
    parts = [trial.at for trial in trials if trial.workload != whole[0].workload]
    axes.plot(parts, [0.02] * len(parts), "|", color=_COLOURS["faint"], markersize=7, transform=edge)
    axes.set_yscale("log")
    axes.set_xlabel("seconds since the start of the run")
    axes.set_ylabel(f"latency in {unit}")


def _chart(name: str, draw: Any) -> Chart:
    forms = {form: _svg(f"{name}-{form}", size, draw) for form, size in _SIZES.items()}
    return Chart(**forms)


def colour_of(toolchain: str | None) -> str:
    """Return the colour of a toolchain in a drawing; None for lines between toolchains."""
    return _COLOURS["faint"] if toolchain is None else _COLOURS[toolchain_class(toolchain)]


def standalone_picture(name: str, draw: Callable[[Any], None]) -> str:
    """Return a chart as a file of SVG, in the colours of the light page on white.

    Args:
        name: Salt of the identifiers in it, so that the same drawing is the same text.
        draw: Function that draws into axes.

    Raises:
        UsageError: Matplotlib is not installed.
    """
    svg = _drawn(name, _SIZES["wide"], draw, is_transparent=False)
    for variable, colour in _COLOURS.items():
        svg = svg.replace(colour, _FILE_COLOURS[variable])
    return svg


def _svg(name: str, size: tuple[float, float], draw: Any) -> str:
    return _for_page(_drawn(name, size, draw), name)


def _drawn(name: str, size: tuple[float, float], draw: Any, *, is_transparent: bool = True) -> str:
    matplotlib = report_package("matplotlib")
    figure_module = report_package("matplotlib.figure")
    ticker = report_package("matplotlib.ticker")
    ink = _COLOURS["ink"]
    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.size": 9,
        "text.color": ink,
        "axes.edgecolor": _COLOURS["faint"],
        "axes.labelcolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": _COLOURS["faint"],
        "grid.alpha": 0.35,
        "grid.linewidth": 0.5,
    }
    with matplotlib.rc_context(settings):
        figure = figure_module.Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        draw(axes)
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                low, high = axis.get_view_interval()
                shown = "123456789" if high / low < _ONE_DECADE else "25" if high / low < _FEW_DECADES else ""
                axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_formatter(ticker.FuncFormatter(partial(_tick_text, shown)))
        buffer = io.StringIO()
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=is_transparent, metadata=metadata)
    return buffer.getvalue()


def _tick_text(digits: str, value: float, _: object) -> str:
    """Return the text of a tick between powers of ten if it begins with one of some digits."""
    text = f"{value:g}"
    return text if text.strip("0.")[:1] in set(digits) else ""


def _for_page(svg: str, name: str) -> str:
    """Return a drawing without declaration and unused identifiers, with variables of the page for colours."""
    svg = svg[svg.index("<svg") :]
    for variable, colour in _COLOURS.items():
        svg = svg.replace(colour, f"var(--{variable})")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Two drawings in one page must not share identifiers.
    svg = re.sub(r"#([\w-]+)", rf"#{name}-\1", svg)
    used = set(re.findall(r"#([\w-]+)", svg))
    svg = _DEFINED.sub(lambda match: f' id="{name}-{match[1]}"' if f"{name}-{match[1]}" in used else "", svg)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 role="img"', svg, count=1)
