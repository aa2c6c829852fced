"""`intarsia explain` where it cannot: exact messages and exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.command_line import within
from tests.explanations import EXPLANATION
from tests.fake_kernels import f32, fake, plan_of

from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import RunKernel

pytestmark = pytest.mark.usefixtures("fake_toolchain")


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def saved(explanation: str | None) -> None:
    a = f32("x", 4)
    executable = Executable(plan_of([RunKernel(0, (0,), (1,))], [a], [1], [a, a]), [fake("double")])
    executable.save("m", explanation=explanation, format=ArtifactFormat.DIRECTORY)


def error(*arguments: str, code: int = 2) -> str:
    outcome = within(["explain", *arguments])
    assert (outcome.code, outcome.out) == (code, "")
    return outcome.err


def test_an_artifact_without_one() -> None:
    saved(None)
    assert error("m") == (
        "error: m contains no explanation\n"
        "help: artifacts of intarsia tune contain one; intarsia explain MODEL shows stored measurements\n"
    )


@pytest.mark.parametrize(
    ("node", "help_text"),
    [
        ("block/con", "did you mean block/conv or block/relu?"),
        ("Reluu", "did you mean Relu?"),
        ("77", "there are numbers from 1 to 3, and the operators Conv, Relu, Gemm"),
    ],
)
def test_an_unknown_node(node: str, help_text: str) -> None:
    saved(EXPLANATION.to_text())
    assert error("m", node) == f"error: tiny has no node {node!r}\nhelp: {help_text}\n"


def test_an_explanation_of_another_version() -> None:
    saved(EXPLANATION.to_text().replace('"version":2', '"version":3', 1))
    assert error("m", code=3) == (
        "error: the explanation in m has version 3, expected 2\n"
        "help: read it with the version of Intarsia that saved it, or tune the model again\n"
    )


def test_a_damaged_explanation() -> None:
    saved("{")
    found = error("m", code=3)
    assert found.startswith("error: the explanation in m is damaged: Expecting property name")


def test_what_is_for_models_only() -> None:
    saved(EXPLANATION.to_text())
    assert error("m", "--target", "openvino") == (
        "error: --target cannot be used with m: it is an artifact, compiled already\n"
        "help: pass --target to intarsia tune, or use the model itself\n"
    )


def test_a_model_with_a_toolchain() -> None:
    assert error("zoo:mnist@openvino") == (
        'error: explain takes a model without @openvino\nhelp: write --target "openvino"\n'
    )


def test_no_database() -> None:
    found = error("zoo:mnist", "--database", "none.db", code=6)
    assert found.splitlines()[0] == "error: there is no database none.db"


def test_nothing_there() -> None:
    assert error("none.onnx") == "error: there is no file none.onnx\nhelp: check the path\n"
