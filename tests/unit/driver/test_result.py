"""The short forms of a result, for interactive sessions and notebooks."""

from __future__ import annotations

from typing import Any

from intarsia.driver.result import TuneResult
from intarsia.measure.timing.interleaved import RatioInterval
from intarsia.measure.timing.timing import Timing
from intarsia.tune.contest.candidate_record import CandidateRecord, Status

WINNER = CandidateRecord(
    "native",
    "cpu -toolchain=native",
    Status.MEASURED,
    max_error=1e-6,
    timing=Timing((2e-3,), 1),
    ratio=RatioInterval(1.0, 1.0, 1.0),
    chosen=True,
)
REFUSED = CandidateRecord("openvino", "cpu -toolchain=openvino", Status.UNSUPPORTED, "it has no <Det>")


def result_of(*candidates: CandidateRecord) -> TuneResult:
    """Return a result of which only model and candidates are read."""
    nothing: Any = None
    return TuneResult("net", nothing, candidates, "", nothing, nothing, 1.0, 0, nothing, nothing)


def test_the_short_form_names_the_winner() -> None:
    assert repr(result_of(WINNER, REFUSED)) == "TuneResult('net': native, 2.00 ms, of 2 candidates)"
    assert repr(result_of(WINNER)) == "TuneResult('net': native, 2.00 ms, of 1 candidate)"


def test_a_notebook_shows_the_table() -> None:
    html = result_of(WINNER, REFUSED)._repr_html_()
    assert html.startswith("<table><tr><th>model</th><th>toolchain</th><th style=")
    right = ' style="text-align: right"'
    assert (
        f'<tr style="font-weight: bold"><td>net</td><td>native</td><td{right}>2.00 ms</td><td>1.000</td>'
        f"<td{right}>1.0e-06</td><td>yes</td></tr>"
    ) in html
    assert '<tr title="it has no &lt;Det&gt;"><td>net</td><td>openvino</td>' in html
