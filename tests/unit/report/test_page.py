"""The report as a page: all facts of a run, nothing loaded, nothing of a model unescaped."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.explanations import EXPLANATION, RUN, SCRIPT, UNTUNED
from tests.html_page import HtmlPage

from intarsia.report import packages
from intarsia.report.explanation import Explanation
from intarsia.report.page import HtmlReport, render_page
from intarsia.report.report_source import ReportSource
from intarsia.report.run_records import GraphNode
from intarsia.runtime.kernel_profiler import KernelWork, ProfiledKernel, SourceNode
from intarsia.runtime.profile import Profile, ProfileRow
from intarsia.support.errors import UsageError

CONV, RELU = SourceNode("block/conv", "Conv"), SourceNode(SCRIPT, "Relu")
WORK = KernelWork(8_000, 400, 5e-6)
PROFILE = Profile(
    (
        ProfileRow(
            "fast",
            "main",
            ProfiledKernel("conv_relu", (CONV, RELU), CONV, KernelWork(8_000, 400, 5e-6)),
            1,
            2e-5,
        ),
        ProfileRow("slow", "tail", ProfiledKernel("gemm"), 1, 1e-5),
    ),
    4e-5,
    1e-5,
    3.9e-5,
    8,
    notes=("the clock of slow is coarse",),
)
HOST = {"l1d_bytes": 32768, "isa": ["avx2"], "system": "Linux 6.8", "toolchains": {"fast": "1.2"}}
SOURCE = ReportSource(RUN, "Made by hand.", HOST, "onnx.reference", 0.0, PROFILE)
LOADING = {"link", "img", "iframe", "object", "embed", "base", "form"}
"""Elements that may load something."""

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def html() -> str:
    return render_page(SOURCE)


@pytest.fixture(scope="module")
def page(html: str) -> HtmlPage:
    return HtmlPage.of(html)


def text_of(explanation: Explanation, section: str) -> str:
    return HtmlPage.of(render_page(ReportSource(explanation, "Made by hand."))).texts[section]


FACTS = {
    "verdict": """
        fast 1, slow 1 (chosen) 3.20 ms 1.000
        slow 3.50 ms 1.090 (1.070 to 1.110)
        quick: wrong: output "y" differs by 0.5""",
    "map": """
        fast: 2 nodes
        slow: 1 node
        folded, or not recorded: 1 node
        block/conv""",
    "parts": """
        Conv+Relu (nodes 1..2) fast 2.00 ms (1.80 ms to 2.20 ms) 2.10 ms
        slow (Conv+Relu): it takes 500 us more; to win it would have to be 20.0% faster
        not measured apart; of the other whole programs slow is the closest
        to win it would have to be 8.3% faster""",
    "waterfall": """
        slow alone 3.50 ms
        Conv+Relu on fast -500 us
        not explained by single measurements +200 us
        fast 1, slow 1 (chosen) 3.20 ms""",
    "decisions": """
        Nothing was decided on the program itself.
        On: 2.00 ms (chosen)
        14 candidates, 9 measured""",
    "remarks": """
        FuseOps (missed): Conv block/conv is not fused with what follows: its result is used twice; Relu (node
        also 1 more Gemm
        FoldConstant (remark): Relu""",
    "budget": """
        Wall-clock time by stage: 2.50 s
        parts of the model , 1 500 ms
        TuneLayout slow 1.50 s 5 10.0 %
        Without measurements: TuneRewrite.""",
    "history": """
        seconds since the start of the run
        latency in ms""",
    "roofline": """
        block/conv (+1) conv_relu fast 20.0 us 50.0 % 25 %
        39.0 us end to end without profiling
        the clock of slow is coarse""",
    "errors": """
        ordinary y right 1.0e-06 2.0e-07 5.0 %
        large y wrong - -
        slow 3.0e-07 (25 %) 0 (0 %)
        quick wrong 5.0e-01 (4000 times) -
        ordinary: onnx.reference""",
    "machine": """
        Abacus 3, 2 usable cores
        L1 data cache 32 KiB
        avx2
        Toolchains fast 1.2
        Intarsia 0.1.0
        1970-01-01 00:00 UTC""",
    "again": """
        intarsia tune tiny --budget 5s --shape x=1,3 --exact
        by hand
        Workload feed""",
}
"""Texts of each section, a line each."""


@pytest.mark.parametrize("section", FACTS)
def test_facts(page: HtmlPage, section: str) -> None:
    for fact in FACTS[section].strip().splitlines():
        assert fact.strip() in page.texts[section]


def test_the_headline_has_the_interval(page: HtmlPage) -> None:
    assert "slow alone took 1.090 times as long (95 % interval 1.070 to 1.110)." in page.texts[""]


def test_every_section_is_linked(page: HtmlPage) -> None:
    links = [attributes["href"][1:] for tag, attributes in page.elements if tag == "a"]
    assert links == [attributes["id"] for tag, attributes in page.elements if tag == "section"]


def test_elements_are_closed_and_identifiers_unique(page: HtmlPage) -> None:
    assert page.open_tags == []
    assert len(set(page.identifiers)) == len(page.identifiers)


def test_nothing_is_loaded(html: str, page: HtmlPage) -> None:
    assert {tag for tag, _ in page.elements} & {
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
    } == set()
    for _, attributes in page.elements:
        assert "src" not in attributes
        assert all(attributes.get(name, "#").startswith("#") for name in ("href", "xlink:href"))
    assert re.findall(r"url\((?!#)|@import|fetch\(|XMLHttpRequest|innerHTML", html) == []


def test_names_of_a_model_are_escaped(html: str, page: HtmlPage) -> None:
    assert SCRIPT not in html
    assert "alert(1)" in html  # as text
    assert [name for name, _ in page.elements].count("script") == 2
    assert "&lt;/script&gt;" in html


@pytest.mark.parametrize(
    "attacked",
    [
        replace(RUN, model=SCRIPT, cpu=SCRIPT, notes=(SCRIPT,), decisions=(SCRIPT,)),
        replace(RUN, contest=tuple(replace(record, name=SCRIPT, reason=SCRIPT) for record in RUN.contest)),
        replace(RUN, graph=(GraphNode(1, SCRIPT, SCRIPT, "", SCRIPT),)),
        replace(RUN, errors=tuple(replace(error, output=SCRIPT, judge=SCRIPT) for error in RUN.errors)),
        replace(RUN, tuning=tuple(replace(record, name=SCRIPT, fate=SCRIPT) for record in RUN.tuning)),
    ],
)
def test_attacks_stay_text(attacked: Explanation) -> None:
    html = render_page(replace(SOURCE, explanation=attacked, origin=SCRIPT, reference=SCRIPT))
    assert SCRIPT not in html
    assert [name for name, _ in HtmlPage.of(html).elements].count("script") == 2


def test_details_of_nodes(page: HtmlPage) -> None:
    details = json.loads(page.scripts["details"])
    assert details["nodes"]["2"] == ["Relu", SCRIPT, "fast", "1", [0], [1]]
    assert details["nodes"]["1"][5] == [0]
    assert details["remarks"][1] == "FoldConstant: remark: folds to 4 elements"
    assert details["kernels"][0] == ["conv_relu", "fast", "20.0 us", "50.0%", "25%"]
    first, second = details["regions"]
    assert first["rival"] == "slow (Conv+Relu): it takes 500 us more; to win it would have to be 20.0% faster"
    assert first["tried"][1] == [
        "slow",
        "Conv+Relu",
        "1..2",
        "2.50 ms",
        "2.25 ms to 2.75 ms",
        "lost: 500 us more",
    ]
    assert (first["untried"], first["left_out"]) == (1, 3)
    assert second["tried"][1][5] == "unsupported: operator 'Gemm' is beneath this toolchain"


def test_decisions_hide_candidates_of_another_program() -> None:
    page = HtmlPage.of(render_page(ReportSource(replace(RUN, decisions=("pipeline: fast",)), "")))
    details = json.loads(page.scripts["details"])
    assert details["regions"] == []
    assert "starts with decisions" in details["gap"]


def test_parts_of_the_program_before_decisions_are_shown() -> None:
    """The winner's program has other numbers; the candidates are those of the program that is drawn."""
    decided = replace(RUN, decisions=("pipeline: fast",), functions=(), undecided=RUN.functions)
    details = json.loads(HtmlPage.of(render_page(ReportSource(decided, ""))).scripts["details"])
    assert details["regions"][0]["tried"][1][5] == "lost: 500 us more"
    assert "Parts were searched in the program before them" in details["basis"]
    assert details["gap"] == ""
    assert json.loads(HtmlPage.of(render_page(SOURCE)).scripts["details"])["basis"] == ""


@pytest.mark.parametrize(
    ("section", "gap"),
    [
        ("map", "The graph is not recorded in this explanation"),
        ("budget", "The time of the stages is not recorded"),
        ("history", "The measurements of the run are not recorded"),
        ("roofline", "The winner was not profiled for this report."),
        ("remarks", "Remarks of passes are not recorded"),
        ("errors", "Errors by output and input set are not recorded"),
        ("machine", "only the CPU is part of this explanation"),
        ("again", "The options of the run are not recorded"),
    ],
)
def test_gaps_are_said(section: str, gap: str) -> None:
    assert gap in text_of(EXPLANATION, section)


def test_kernels_above_the_roof_are_pointed_out(page: HtmlPage) -> None:
    row = replace(PROFILE.rows[0], seconds=1e-6)
    text = HtmlPage.of(render_page(replace(SOURCE, profile=replace(PROFILE, rows=(row,))))).texts["roofline"]
    assert "1 kernel is above the roof" in text
    assert "above the roof" not in page.texts["roofline"]


def test_a_model_without_a_winner() -> None:
    assert "no winner to explain" in text_of(UNTUNED, "waterfall")
    assert "Stored measurements; no winner was chosen." in text_of(UNTUNED, "")


def test_sizes_of_dynamic_dimensions() -> None:
    sized = tuple(
        replace(record, by_size=(("n=16", 4e-3), ("n=2", seconds)))
        for record, seconds in zip(RUN.contest[:2], (1e-3, 2e-3), strict=True)
    )
    text = text_of(replace(RUN, contest=sized), "sizes")
    assert text.endswith("n=2 1.00 ms 2.00 ms 0.500 n=16 4.00 ms 4.00 ms 1.000")
    assert "sizes" not in HtmlPage.of(render_page(SOURCE)).texts


def test_a_thousand_nodes_stay_below_two_megabytes() -> None:
    graph = tuple(
        GraphNode(
            number, "Conv", f"stage{number}/block/convolution", f"{number - 1}" if number else "", "fast"
        )
        for number in range(1_000)
    )
    region = RUN.functions[0].regions[0]
    many = replace(region, tried=region.tried * 250)  # the maximum that explanations list
    function = replace(RUN.functions[0], regions=(many,))
    row = PROFILE.rows[0]
    profile = replace(PROFILE, rows=(row,) * 500)
    big = replace(SOURCE, explanation=replace(RUN, graph=graph, functions=(function,)), profile=profile)
    assert len(render_page(big).encode()) < 2_000_000


def test_the_same_run_gives_the_same_page(html: str) -> None:
    assert render_page(SOURCE) == html


def test_notebooks_get_a_frame() -> None:
    frame = HtmlReport(SOURCE)._repr_html_()
    (tag, attributes), *rest = HtmlPage.of(frame).elements
    assert (tag, rest) == ("iframe", [])
    assert attributes["srcdoc"] == HtmlReport(SOURCE).html
    assert attributes["sandbox"] == "allow-scripts"


def test_a_file(tmp_path: Path, html: str) -> None:
    HtmlReport(SOURCE).write(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == html


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(UsageError) as caught:
        render_page(SOURCE)
    assert str(caught.value) == "a report needs the package jinja2\nhelp: pip install 'intarsia[report]'"
    with pytest.raises(UsageError):
        packages.check_report_packages()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed here")
@pytest.mark.slow
def test_a_browser_shows_a_node_by_its_link(tmp_path: Path, html: str) -> None:
    (tmp_path / "report.html").write_text(html)
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    command += ["--virtual-time-budget=2000", "--dump-dom", f"file://{tmp_path / 'report.html'}#node-2"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    panel = shown[shown.index('<div id="picked">') :].partition("</section>")[0]
    assert "fast runs it." in panel
    assert "20.0 us (50.0%), fast conv_relu, 25% of its roofline" in panel
    assert "slow, Conv+Relu (1..2): 2.50 ms (2.25 ms to 2.75 ms): lost: 500 us more" in panel
    assert "Of its part, 1 more candidates were not tried, and 3 are not listed." in panel
    assert SCRIPT not in panel
