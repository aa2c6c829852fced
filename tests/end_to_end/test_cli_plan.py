"""`intarsia tune --plan` and `--locked`: what was found is kept in a file, and carried out as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.end_to_end.command_line import Outcome, process, within

from intarsia.collage.placement.plan import Plan
from intarsia.support.files import write_text

pytestmark = pytest.mark.processes

TUNE = ("tune", "zoo:mnist", "--budget", "1", "--target", "onnxruntime", "--target", "openvino")
OTHER = "help: give a file that intarsia tune --plan wrote, or the name of a new one\n"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of these tests alone: others count what is measured of the same model."""
    return str(tmp_path_factory.mktemp("database") / "measurements.db")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, database: str) -> Path:
    """A folder in which mnist was tuned, with a plan."""
    path = tmp_path_factory.mktemp("plan")
    outcome = process(*TUNE, "--plan", "mnist.plan", "--database", database, cwd=path)
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[-3] == "wrote the plan mnist.plan"
    assert sorted(each.name for each in path.iterdir()) == ["mnist.intarsia", "mnist.plan"]
    return path


@pytest.fixture
def here(tuned: Path, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with the plan."""
    (tmp_path / "mnist.plan").write_bytes((tuned / "mnist.plan").read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTARSIA_DATABASE", database)
    return tmp_path


def locked(*arguments: str) -> Outcome:
    return within(["tune", "zoo:mnist", "--locked", "-q", *arguments])


def test_the_plan_is_taken_up_and_written_again(here: Path) -> None:
    first = Plan.read(Path("mnist.plan"))
    document = within([*TUNE, "--plan", "mnist.plan", "-q", "--json"]).document
    assert document["plan"] == "mnist.plan"
    second = Plan.read(Path("mnist.plan"))
    assert second.program == first.program
    # The winner depends on the machine: one toolchain for all, or a mix.
    assert document["chosen"].startswith(second.summary)


def test_without_a_database_nothing_is_stored(here: Path) -> None:
    before = {path.name for path in here.iterdir()}
    document = within([*TUNE, "--database", "none", "-q", "--json"]).document
    assert document["chosen"]
    assert {path.name for path in here.iterdir()} - before == {"mnist.intarsia"}


def test_without_a_plan_none_is_written(here: Path) -> None:
    Path("mnist.plan").unlink()
    document = within([*TUNE, "-q", "--json"]).document
    assert document["plan"] is None
    assert document["tuning_notes"], "what was left out is said in JSON too"
    assert [each.name for each in here.iterdir()] == ["mnist.intarsia"]


def test_locked_builds_the_plan_and_nothing_else(here: Path) -> None:
    before = Path("mnist.plan").read_bytes()
    outcome = process("tune", "zoo:mnist", "--plan", "mnist.plan", "--locked", "--json", "-q", cwd=here)
    document = outcome.document
    assert [each["chosen"] for each in document["candidates"]] == [True]
    assert document["candidates"][0]["verified"] is True
    assert document["plan"] is None
    assert "tuning_notes" in document, "the keys are those of a run that searches"
    assert Path("mnist.plan").read_bytes() == before
    assert sorted(each.name for each in here.iterdir()) == ["mnist.intarsia", "mnist.plan"]
    assert within(["verify", "mnist.intarsia", "-q"]).code == 0


def test_locked_shows_its_steps(here: Path) -> None:
    outcome = process("tune", "zoo:mnist", "--plan", "mnist.plan", "--locked", cwd=here)
    assert outcome.code == 0, outcome.err
    lines = [line.partition("] ")[2] for line in outcome.err.splitlines() if line.startswith("[")]
    assert lines[:3] == ["importing the model", "computing the reference result", "measuring 0 of 1"]
    assert not any("searching" in line or "racing" in line for line in lines)
    assert "wrote the plan" not in outcome.out


def test_a_plan_of_several_toolchains_is_carried_out(here: Path) -> None:
    """Each half of mnist's chain for one engine, written by hand as a search might have."""
    data = json.loads(Path("mnist.plan").read_text())
    plan = Plan.read(Path("mnist.plan"))
    calls = sum(plan.program.operators.values())
    halves = [("onnxruntime", f"1..{calls // 2}"), ("openvino", f"{calls // 2 + 1}..{calls}")]
    data |= {"whole": None, "decisions": []}  # the winner may be a tuned program
    data["partitions"] = [
        {
            "function": "main",
            "target": f"cpu -toolchain={name}",
            "nodes": nodes,
            "label": "half",
            "composites": [],
        }
        for name, nodes in halves
    ]
    write_text(Path("mnist.plan"), json.dumps(data))
    outcome = locked("--plan", "mnist.plan", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.document["chosen"] == "onnxruntime 1, openvino 1"
    assert within(["verify", "mnist.intarsia", "-q"]).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "a locked run needs a plan\nhelp: pass the file of a plan: --plan FILE\n"),
        (("--plan", "no.plan"), f"there is no plan no.plan\n{OTHER}"),
        (
            ("--plan", "mnist.plan", "--target", "openvino"),
            "a locked run takes no target: the plan fixes it\n"
            "help: drop that option, or run without --locked to search again\n",
        ),
        (
            ("--plan", "mnist.plan", "--threads", "1"),
            "a locked run takes no threads: the plan fixes it\n"
            "help: drop that option, or run without --locked to search again\n",
        ),
    ],
)
def test_locked_runs_that_cannot_be(here: Path, arguments: tuple[str, ...], message: str) -> None:
    assert locked(*arguments) == Outcome(2, "", f"error: {message}")
    assert [each.name for each in here.iterdir()] == ["mnist.plan"]


def test_a_plan_of_another_program_says_what_differs(here: Path) -> None:
    outcome = within(["tune", "zoo:squeezenet", "--plan", "mnist.plan", "-q"])
    assert outcome == Outcome(
        2,
        "",
        "error: the plan mnist.plan is for another program (mnist): its input x is "
        "Tensor[(1, 1, 28, 28), float32], that of the model Tensor[(1, 3, 224, 224), float32]\n"
        "help: give the plan of this model, or the name of a new file to make one\n",
    )
    assert [each.name for each in here.iterdir()] == ["mnist.plan"]


def test_a_plan_of_a_toolchain_that_is_not_here(here: Path) -> None:
    text = Path("mnist.plan").read_text()
    for name in ("onnxruntime", "openvino"):
        text = text.replace(f"-toolchain={name}", "-toolchain=elsewhere")
    write_text(Path("mnist.plan"), text)
    outcome = locked("--plan", "mnist.plan")
    assert outcome.code == 2
    assert outcome.err.startswith(
        "error: the plan mnist.plan cannot be carried out here: unknown toolchain 'elsewhere'\n"
    )


def test_a_damaged_plan_is_left_as_it_is(here: Path) -> None:
    text = Path("mnist.plan").read_text()[:200]
    write_text(Path("mnist.plan"), text)
    outcome = within([*TUNE, "--plan", "mnist.plan", "-q"])
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: mnist.plan is no plan, or is cut off: it is no JSON at line ")
    assert Path("mnist.plan").read_text() == text


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (".", "cannot write the plan .: it is a folder\nhelp: give the name of a file\n"),
        ("out/x.plan", "cannot write out/x.plan: no such file or directory\nhelp: create the folder first\n"),
        (
            "mnist.intarsia",
            "cannot write the plan mnist.intarsia: the artifact goes there\nhelp: give another name\n",
        ),
    ],
)
def test_places_where_no_plan_can_be(here: Path, place: str, message: str) -> None:
    assert within([*TUNE, "--plan", place, "-q"]) == Outcome(2, "", f"error: {message}")


def test_the_model_is_never_overwritten_by_a_plan(here: Path) -> None:
    within(["zoo", "export", "mnist"])
    before = Path("mnist.onnx").read_bytes()
    outcome = within(["tune", "mnist.onnx", "--plan", "mnist.onnx", "-q"])
    assert outcome.code == 2
    assert outcome.err.startswith("error: cannot write mnist.onnx: it is the input file\n")
    assert Path("mnist.onnx").read_bytes() == before
