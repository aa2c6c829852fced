"""`intarsia report` after a real `intarsia tune --report`, for the artifact and for the database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.end_to_end.command_line import Outcome, process, within
from tests.html_page import HtmlPage

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with mnist tuned for two toolchains, its report, and the database of that."""
    path = tmp_path_factory.mktemp("reported")
    words = "tune zoo:mnist --target native --target onnxruntime --budget 5s --passes none --database m.db"
    done = process(*words.split(), "-o", "m.intarsia", "--report", "tuned.html", "--json", cwd=path)
    assert done.code == 0, done.err
    (path / "tune.json").write_text(done.out)
    return path


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def report(*arguments: str) -> Outcome:
    return within(["report", *arguments])


def page(path: str) -> HtmlPage:
    return HtmlPage.of(Path(path).read_text())


def test_tune_writes_the_report_of_its_run(folder: Path) -> None:
    document = json.loads((folder / "tune.json").read_text())
    texts = page("tuned.html").texts
    assert document["report"] == "tuned.html"
    assert f"{document['chosen']} (chosen)" in texts["verdict"]
    assert "intarsia tune mnist --budget 5s --target" in texts["again"]
    for stage in ("reading the model", "measuring each toolchain alone"):  # a race needs two close candidates
        assert stage in texts["budget"]
    for inputs in ("ordinary", "large", "edges"):
        assert f"{inputs} logits right" in texts["errors"]
    assert "end to end without profiling" in texts["roofline"]
    assert "native 0.1.0" in texts["machine"]


def test_the_artifact_has_the_same_facts(folder: Path) -> None:
    outcome = report("m.intarsia", "-o", "artifact.html")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("wrote artifact.html (")
    tuned, saved = page("tuned.html").texts, page("artifact.html").texts
    for section in ("verdict", "parts", "waterfall", "decisions", "budget", "history", "errors", "again"):
        assert saved[section] == tuned[section]


def test_the_map_is_that_of_the_model() -> None:
    details = json.loads(page("tuned.html").scripts["details"])
    names = {record[1] for record in details["nodes"].values()}
    assert {"x", "block1/conv", "dense"} <= names
    assert {record[2] for record in details["nodes"].values() if record[0]} <= {"native", "onnxruntime"}
    convolution = next(record for record in details["nodes"].values() if record[1] == "block1/conv")
    assert convolution[4], "no kernel computes it"


def test_the_newest_run_of_a_database() -> None:
    outcome = report("m.db", "-o", "stored.html", "--json")
    assert outcome.document["model"] == "mnist"
    assert "A database holds no program that could be profiled" in outcome.document["gap"]
    tuned, stored = page("tuned.html").texts, page("stored.html").texts
    assert stored["verdict"] == tuned["verdict"]
    # The run is stored before the report is made, which may be a minute later.
    assert stored["machine"].partition("Finished")[0] == tuned["machine"].partition("Finished")[0]
    assert "A database holds no program" in stored["roofline"]


def test_without_a_profile_nothing_runs() -> None:
    outcome = report("m.intarsia", "-o", "plain.html", "--no-profile")
    assert outcome.out.endswith("No profile was requested.\n")
    assert page("plain.html").texts["machine"] in page("tuned.html").texts["machine"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("m.db", "--model", "resnet"),
            "error: the database m.db has no finished run of 'resnet'\nhelp: it has",
        ),
        (("m.intarsia", "--model", "mnist"), "error: --model needs a database"),
        (("m.db", "--untrusted"), "error: --untrusted and --require-signature need an artifact"),
        (("m.intarsia", "-o", "m.intarsia"), "error: cannot write m.intarsia: it is the input file"),
        (("none.intarsia",), "error: none.intarsia does not exist"),
        (("m.intarsia", "-o", "no/where.html"), "error: cannot write no/where.html"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str) -> None:
    outcome = report(*arguments)
    assert outcome.code in {2, 3}
    assert outcome.err.startswith(message), outcome.err
