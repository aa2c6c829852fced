"""Charts as SVG in the colours of the page."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from tests.explanations import RUN
from tests.unit.report.test_page import PROFILE

from intarsia.report.charts import Chart, history_chart, roofline_chart
from intarsia.runtime.profile import Profile

HISTORY = history_chart(RUN.trials, RUN.workload)
ROOFLINE = roofline_chart(PROFILE)
DRAWINGS = [
    svg for chart in (HISTORY, ROOFLINE) if isinstance(chart, Chart) for svg in (chart.wide, chart.narrow)
]


@pytest.mark.parametrize("svg", DRAWINGS)
def test_colours_are_variables_of_the_page(svg: str) -> None:
    colours = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", svg))
    assert {colour for colour in colours if colour != "none" and not colour.startswith("var(--")} == set()
    assert "var(--ink)" in colours


def test_both_charts_have_two_widths() -> None:
    assert len(DRAWINGS) == 4
    widths = [float(re.findall(r'viewBox="0 0 ([\d.]+)', svg)[0]) for svg in DRAWINGS]
    assert widths[0] == widths[2] == 2 * widths[1] == 2 * widths[3]


def test_drawings_share_no_identifier() -> None:
    identifiers = [name for svg in DRAWINGS for name in re.findall(r' id="([^"]+)"', svg)]
    assert len(set(identifiers)) == len(identifiers) > 0
    for svg in DRAWINGS:
        assert set(re.findall(r"#([\w-]+)", svg)) == set(re.findall(r' id="([^"]+)"', svg))


@pytest.mark.parametrize("svg", DRAWINGS)
def test_texts_are_texts(svg: str) -> None:
    texts = ["".join(element.itertext()) for element in ET.fromstring(svg).iter() if "text" in element.tag]
    assert set(texts) & {"seconds since the start of the run", "operations per byte"}


def test_failures_and_parts_are_no_latencies() -> None:
    """Of five events two are latencies of the model; the best of them is the end of the line."""
    failed_only = [trial for trial in RUN.trials if trial.cost is None]
    assert history_chart(failed_only, RUN.workload) == (
        "The measurements of the run are not recorded, so that there is no history."
    )
    assert history_chart(RUN.trials, "another") == history_chart((), "feed")


def test_kernels_without_work() -> None:
    profile = Profile(PROFILE.rows[1:], 1e-5, 0.0, 1e-5, 1)
    assert roofline_chart(profile) == (
        "No kernel of the winner reports its operations and bytes, so that there is no roofline."
    )
