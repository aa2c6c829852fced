"""The report as one page of HTML, by the package Jinja2."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Final

from intarsia.report.candidate_errors import errors_by_inputs
from intarsia.report.charts import history_chart, roofline_chart
from intarsia.report.explanation import Explanation
from intarsia.report.graph_map import graph_map
from intarsia.report.machine_facts import machine_facts
from intarsia.report.outcome_text import to_win_text, whole_to_win_text
from intarsia.report.packages import report_package
from intarsia.report.report_source import ReportSource
from intarsia.report.reproduction import command
from intarsia.report.search_line import loss_line, search_line
from intarsia.report.spending import STAGES, spending
from intarsia.report.verdict import RatioScale, headline, size_rows, verdict_rows
from intarsia.report.waterfall import Waterfall, waterfall
from intarsia.runtime.profile import Profile
from intarsia.support.files import write_text
from intarsia.support.units import NOTHING, duration_text, error_text
from intarsia.support.version import VERSION

_MOST_KERNELS: Final = 40
"""Number of kernels in the table; the chart has all of them."""

_MOST_SUBJECTS: Final = 30
"""Number of expressions that are listed for a remark; the map has those of each node."""

_ABOVE: Final = 1.1
"""Ratio of the least time by the roofline to the time from which a kernel counts as above its roof: rates of
a machine model are exact to some percent."""

_FRAME_HEIGHT: Final = 760
"""Height of the page in a notebook, in pixels."""

_SECTIONS: Final = (
    ("verdict", "Verdict"),
    ("map", "Map"),
    ("parts", "Parts"),
    ("waterfall", "Waterfall"),
    ("decisions", "Decisions"),
    ("remarks", "Remarks"),
    ("budget", "Budget"),
    ("history", "History"),
    ("roofline", "Roofline"),
    ("errors", "Errors"),
    ("machine", "Machine"),
    ("again", "Reproduce"),
)


@dataclass(frozen=True, eq=False)
class HtmlReport:
    """A report of a tuning run; notebooks show it.

    Attributes:
        source: Records of the run, and the profile of its winner.
    """

    source: ReportSource

    @cached_property
    def html(self) -> str:
        """The page: one document that loads nothing.

        Raises:
            UsageError: A package of the extra `report` is not installed.
        """
        return render_page(self.source)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Raises:
            UsageError: A package of the extra `report` is not installed.
            OutputError: The file cannot be written.
        """
        write_text(Path(path), self.html)

    def _repr_html_(self) -> str:
        """Return a frame with the page for a notebook, whose styles and scripts stay inside."""
        page = escape(self.html, quote=True)
        style = f"width:100%;height:{_FRAME_HEIGHT}px;border:0"
        return f'<iframe sandbox="allow-scripts" srcdoc="{page}" style="{style}"></iframe>'


def render_page(source: ReportSource) -> str:
    """Return the report of a run as one page of HTML that loads nothing.

    All texts of models are escaped.

    Raises:
        UsageError: A package of the extra `report` is not installed.
    """
    jinja2 = report_package("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("intarsia.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["duration"] = _duration
    environment.filters["error"] = _error
    template = environment.get_template("page.html")
    text: str = template.render(
        run=source.explanation, run_profile=source.profile, page=_page(source), version=VERSION
    )
    return text


def _duration(seconds: float | None) -> str:
    return NOTHING if seconds is None else duration_text(seconds)


def _error(error: float | None) -> str:
    return NOTHING if error is None else error_text(error)


def _page(source: ReportSource) -> dict[str, Any]:
    """Return what the template shows beside the records."""
    run, profile = source.explanation, source.profile
    scale = RatioScale.of(run.contest)
    sizes = size_rows(run)
    way = waterfall(run)
    return {
        "sections": _SECTIONS if sizes is None else (_SECTIONS[0], ("sizes", "Sizes"), *_SECTIONS[1:]),
        "headline": headline(run),
        "origin": source.origin,
        "contest": verdict_rows(run, scale),
        "scale": (f"{scale.low:.2f}", f"{scale.high:.2f}"),
        "one": scale.spot(1.0),
        "sizes": sizes,
        "map": graph_map(run, profile),
        "regions": _regions(run),
        "waterfall": way,
        "bars": () if isinstance(way, str) else _bars(way),
        "candidates": sum(tree.candidates for tree in run.tuning),
        "search": "" if run.search is None else search_line(run.search),
        "losses": "" if run.losses is None else loss_line(run.losses),
        **_budget(run),
        "history": history_chart(run.trials, run.workload),
        **_kernels(source),
        "errors_by_inputs": errors_by_inputs(run),
        "judges": tuple(dict.fromkeys((item.inputs, item.judge) for item in run.errors)),
        "reference": source.reference,
        "machine": machine_facts(source),
        "machine_gap": ""
        if source.host
        else "Versions and caches are not recorded: only the CPU is part of this explanation.",
        "command": command(run),
        "notes": [note for note in run.notes if not _is_of_budget(note, run)],
        "most_subjects": _MOST_SUBJECTS,
    }


def _regions(run: Explanation) -> list[tuple[str, Any, str]]:
    """Return the parts with their functions and what would have to change for the runner-up to win."""
    rows, whole = [], whole_to_win_text(run.contest)
    for function in run.functions:
        for region in function.regions:
            rival = region.rival
            text = f"not measured apart; {whole}" if whole else ""
            if rival is not None:
                parts = ", ".join(f"{part.spec} ({part.label})" for part in rival.parts)
                text = f"{parts}: {to_win_text(rival)}"
            rows.append((function.name, region, text))
    return rows


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar of the waterfall; left and width in percent of the track."""

    label: str
    text: str
    kind: str
    left: float
    width: float


def _bars(way: Waterfall) -> list[_Bar]:
    start, end = way.engine.seconds or 0.0, way.winner.seconds or 0.0
    levels = [start]
    for step in way.steps:
        levels.append(levels[-1] + step.delta)
    low, high = min(0.0, *levels), max(*levels, end)
    scale = 100 / (high - low) if high > low else 0.0

    def bar(label: str, text: str, kind: str, first: float, second: float) -> _Bar:
        left, right = sorted((first, second))
        return _Bar(label, text, kind, round((left - low) * scale, 2), round((right - left) * scale, 2))

    bars = [bar(f"{way.engine.name} alone", duration_text(start), "end", 0.0, start)]
    for step, level in zip(way.steps, levels, strict=False):
        kind = "rest" if step.is_rest else "less" if step.delta < 0 else "more"
        sign = "-" if step.delta < 0 else "+"
        text = f"{sign}{duration_text(abs(step.delta))}"
        bars.append(bar(step.label, text, kind, level, level + step.delta))
    return [*bars, bar(f"{way.winner.name} (chosen)", duration_text(end), "end", 0.0, end)]


def _budget(run: Explanation) -> dict[str, Any]:
    spent, total = spending(run), sum(stage.seconds for stage in run.stages)
    most_stage = max((stage.seconds for stage in run.stages), default=0.0) or 1.0
    most_spent = max((item.seconds for item in spent), default=0.0) or 1.0
    return {
        "total": duration_text(total),
        "stages": [
            (STAGES.get(stage.stage, stage.stage), stage.seconds, round(100 * stage.seconds / most_stage, 1))
            for stage in run.stages
        ],
        "spent": [(item, round(100 * item.seconds / most_spent, 1)) for item in spent],
        "shares": [share for share in run.shares if share.seconds > 0],
        "idle": tuple(dict.fromkeys(share.name for share in run.shares if share.seconds <= 0)),
        "left_out": [note for note in run.notes if note.startswith("left out: ")],
    }


def _is_of_budget(note: str, run: Explanation) -> bool:
    """Whether a note is among those on the budget, or the text of a pass's share."""
    shares = {f"{share.target}: {share.name}: " for share in run.shares}
    return note.startswith(("left out: ", *shares))


def _kernels(source: ReportSource) -> dict[str, Any]:
    profile = source.profile
    gap = source.profile_gap or "The winner was not profiled for this report."
    if profile is None:
        return {"roofline": "", "kernels": (), "profile_sums": "", "profile_gap": gap, "above": ""}
    return {
        "roofline": roofline_chart(profile),
        "kernels": profile.groups("node")[:_MOST_KERNELS],
        "profile_sums": _profile_sums(profile),
        "profile_gap": "",
        "above": _above(profile),
    }


def _above(profile: Profile) -> str:
    """Return a sentence on kernels that take less time than the roofline allows; "" if there are none."""
    count = sum(row.bound is not None and row.bound > _ABOVE * row.seconds for row in profile.rows)
    if not count:
        return ""
    kernels = "1 kernel is" if count == 1 else f"{count} kernels are"
    return (
        f"{kernels} above the roof: nodes whose work another kernel does are counted there, or the values "
        "are in a cache. Profilers of engines do not always name the nodes of a kernel."
    )


def _profile_sums(profile: Profile) -> str:
    more = len(profile.groups("node")) - _MOST_KERNELS
    rest = f"{more} more kernels are not listed. " if more > 0 else ""
    return (
        f"{rest}Kernels take {duration_text(profile.kernel_seconds)} of a profiled run of "
        f"{duration_text(profile.seconds)}; {duration_text(profile.end_to_end_seconds)} end to end without "
        f"profiling, means of the fastest quarter of {profile.repeats} runs."
    )
