"""Explanations as JSON, and back; damage is told."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.explanations import EXPLANATION, RUN, UNTUNED

from intarsia.report.explanation import Explanation
from intarsia.support.errors import ArtifactError


@pytest.mark.parametrize("explanation", [EXPLANATION, RUN, UNTUNED])
def test_there_and_back(explanation: Explanation) -> None:
    assert Explanation.from_text(explanation.to_text(), "x.intarsia") == explanation


def message(text: str) -> str:
    with pytest.raises(ArtifactError) as caught:
        Explanation.from_text(text, "x.intarsia")
    return str(caught.value)


def changed(change: dict[str, Any]) -> str:
    return json.dumps({**EXPLANATION.to_json(), **change})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "the explanation in x.intarsia is damaged: Expecting property name"),
        ("[" * 100_000, "the explanation in x.intarsia is damaged: maximum recursion depth exceeded"),
        (
            changed({"cores": "two"}),
            "the explanation in x.intarsia is damaged: it.cores is 'two', expected a whole number",
        ),
        (
            changed({"version": 9}),
            "the explanation in x.intarsia has version 9, expected 2\nhelp: read it with",
        ),
        ("[]", "the explanation in x.intarsia has version null, expected 2"),
    ],
)
def test_damage(text: str, problem: str) -> None:
    assert message(text).startswith(problem)


def test_damaged_nodes() -> None:
    data = EXPLANATION.to_json()
    data["functions"][0]["regions"][0]["nodes"] = "1..x"
    assert (
        message(json.dumps(data)) == "the explanation in x.intarsia is damaged: '1..x' is no range of nodes"
    )


def test_reading_one_needs_no_compiler() -> None:
    code = (
        "import sys, intarsia.report.explanation, intarsia.runtime.artifact_load\n"
        "print([name for name in ('onnx', 'intarsia.collage', 'intarsia.frontend') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_explanation_of_a_version_before_the_records_of_the_run() -> None:
    data = EXPLANATION.to_json()
    for name in ("workload", "graph", "request", "stages", "trials", "shares", "errors"):
        del data[name]
    assert Explanation.from_text(json.dumps(data), "x.intarsia") == EXPLANATION
