"""`intarsia explain` after a real `intarsia tune`, for the artifact and for the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.end_to_end.command_line import Outcome, process, within

from intarsia.runtime.artifact_load import load

pytestmark = pytest.mark.processes

TARGETS = ("--target", "onnxruntime", "--target", "openvino")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with mnist tuned for two engines, as it is, and the database of that."""
    path = tmp_path_factory.mktemp("explained")
    command = (
        "tune",
        "zoo:mnist",
        *TARGETS,
        "--budget",
        "60s",
        "--until-proven",  # a busy machine lets an engine seem too slow for parts of its own
        "--passes",
        "none",
        "--database",
        "m.db",
        "-o",
        "m.intarsia",
        "--json",
    )
    done = process(*command, cwd=path)
    assert done.code == 0, done.err
    assert json.loads(done.out)["search"] is not None, done.out
    (path / "tune.json").write_text(done.out)
    return path


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def tuned(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "tune.json").read_text())
    assert isinstance(found, dict)
    return found


def explained(*arguments: str) -> dict[str, Any]:
    return within(["explain", *arguments, "--json"]).document


def text(*arguments: str) -> str:
    outcome = within(["explain", *arguments])
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out


def test_tune_tells_of_the_search(folder: Path) -> None:
    document = tuned(folder)
    search, losses = document["search"], document["losses"]
    assert search["candidates"] > 100
    assert search["measured"] <= search["candidates"]  # how many there is time for depends on the machine
    assert search["lower_bound"] <= search["predicted"] * (1 + 1e-9)
    if losses is not None:  # the search's answer may be too slow to be in the race
        assert losses["additive_error"] == pytest.approx(losses["measured"] - losses["predicted"])
        assert losses["optimality_loss_low"] <= losses["optimality_loss_high"]
        assert losses["own"] in {"onnxruntime", "openvino"}


def test_the_artifact_tells_what_runs_where(folder: Path) -> None:
    document = explained("m.intarsia")
    assert document["chosen"] == tuned(folder)["chosen"]
    (main,) = document["functions"]
    nodes = [node for region in main["regions"] for node in _numbers(region["nodes"])]
    assert sorted(nodes) == sorted(set(nodes))
    assert {each["number"] for each in main["nodes"]} <= set(nodes)
    assert all(region["measured"] > 0 for region in main["regions"] if region["toolchain"] != "host")
    fates = [each["fate"] for region in main["regions"] for each in region["tried"]]
    assert set(fates) <= {"chosen", "lost", "not tried"}
    assert len(fates) == main["search"]["candidates"]
    assert document["contest"][0]["name"] == document["chosen"]


def _numbers(ranges: str) -> list[int]:
    ends = [part.split("..") for part in ranges.split(",")]
    return [number for part in ends for number in range(int(part[0]), int(part[-1]) + 1)]


def test_tables(folder: Path) -> None:
    found = text("m.intarsia")
    assert found.startswith(f"mnist: {tuned(folder)['chosen']} was chosen on ")
    for header in ("whole model", "region  toolchain", "region  candidate", "partitions: "):
        assert any(line.startswith(header) for line in found.splitlines()), header
    everything = text("m.intarsia", "--all")
    assert len(everything.splitlines()) > len(found.splitlines()) + 100


@pytest.mark.parametrize("node", ["block1/conv", "2"])
def test_one_node_by_name_and_by_number(node: str) -> None:
    document = explained("m.intarsia", node)
    (found,) = document["nodes"]
    assert (found["number"], found["operator"], found["name"]) == (2, "Conv", "block1/conv")
    assert {each["spec"] for each in found["tried"]} == {"onnxruntime", "openvino", "reference"}
    assert text("m.intarsia", node).startswith("node 2: Conv, block1/conv: ")


def test_nodes_by_operator() -> None:
    assert [each["number"] for each in explained("m.intarsia", "Conv")["nodes"]] == [2, 7]


def test_the_explanation_outlives_loading_and_saving(folder: Path) -> None:
    load(folder / "m.intarsia").save(folder / "again.intarsia")
    assert explained("again.intarsia") == explained("m.intarsia")


def test_a_model_by_what_the_database_knows(folder: Path) -> None:
    before = Path("m.db").read_bytes()
    command = ("explain", "zoo:mnist", *TARGETS, "--database", "m.db")  # the host is that of a plain process
    document = process(*command, "--json", cwd=folder).document
    assert document["chosen"] == ""
    (main,) = document["functions"]
    assert main["search"]["measured"] == 0
    assert main["search"]["known"] == tuned(folder)["search"]["measured"]
    seconds = {each["name"]: each["seconds"] for each in document["contest"] if each["is_whole"]}
    assert set(seconds) == {"onnxruntime", "openvino"}
    assert all(value > 0 for value in seconds.values())
    assert Path("m.db").read_bytes() == before
    found = process(*command, cwd=folder).out
    assert found.startswith("mnist: stored measurements on ")
    assert found.endswith("intarsia tune measures more\n")


def test_a_model_with_the_inputs_that_it_was_measured_with(folder: Path) -> None:
    np.save(folder / "digit.npy", np.full((1, 1, 28, 28), 0.5, np.float32))
    given = ("zoo:mnist", *TARGETS, "--input", "digit.npy", "--database", "digit.db", "--json")
    process("tune", *given, "--budget", "1s", "--output", "digit.intarsia", cwd=folder)
    known = process("explain", *given, cwd=folder).document["contest"]
    assert all(each["seconds"] for each in known if each["is_whole"])
    random = process("explain", *(given[0], *TARGETS, *given[-3:]), cwd=folder).document["contest"]
    assert not any(each["seconds"] for each in random)


def test_a_model_of_which_nothing_is_known() -> None:
    found = text("zoo:bert_tiny", *TARGETS, "--database", "m.db")
    assert "no part of this model has been measured on this machine: what is shown is a guess\n" in found
    assert "onnxruntime        -  not measured" in found
    assert found.startswith("bert_tiny: nothing is stored for these inputs, sizes and threads on ")


def test_one_engine_is_explained_without_a_search() -> None:
    command = ("tune", "zoo:mnist", "--target", "onnxruntime", "--budget", "1s", "--database", "one.db")
    tuned_alone = within([*command, "--passes", "none", "-o", "one.intarsia"])
    assert tuned_alone.code == 0
    assert "partitions:" not in tuned_alone.out
    found = text("one.intarsia")
    assert "no partitions were searched: only whole models were compared\n" in found
    assert "1       onnxruntime  Pad to Add, 13  1..13" in found
    (node,) = explained("one.intarsia", "block1/conv")["nodes"]
    assert node["region"]["toolchain"] == "onnxruntime"


def test_the_tree_of_what_tuning_passes_tried() -> None:
    # A busy machine needs the time for both passes.
    limits = ("--budget", "60s", "--until-proven")
    command = ["tune", "zoo:mnist", "--target", "onnxruntime", *limits, "--database", "traced.db"]
    assert within([*command, "--passes", "TunePipeline,TuneLayout", "-o", "traced.intarsia"]).code == 0
    document = explained("traced.intarsia", "--trace")
    (tree,) = document["tuning"]
    (placement,) = tree["children"]
    tuned = placement["children"][-1]
    assert (tree["name"], placement["name"], tuned["name"]) == ("tuning", "TunePlacement", "onnxruntime")
    passes = {each["name"]: each["children"] for each in tuned["children"]}
    assert set(passes) == {"as it is", "TunePipeline", "TuneLayout"}
    assert {each["name"] for each in passes["TunePipeline"]} == {"none", "default_heuristic"}
    assert all(each["seconds"] or each["fate"] for each in passes["TunePipeline"])
    found = text("traced.intarsia", "--trace").splitlines()
    assert (found[0], found[5]) == ("tuning", "      TunePipeline")
    assert any(line.startswith("        default_heuristic: ") for line in found)
    assert "was chosen, which decides" in found[-1]
    assert "onnxruntime: TunePipeline: " in text("traced.intarsia")


def test_no_tree_where_nothing_was_tried(folder: Path) -> None:
    command = ["tune", "zoo:mnist", *TARGETS[:2], "--budget", "0.5s", "--passes", "none"]
    assert within([*command, "-o", "bare.intarsia"]).code == 0
    assert "no tuning pass tried anything" in text("bare.intarsia", "--trace")
    for arguments in (["m.intarsia", "2"], ["zoo:mnist"], ["m.intarsia", "--all"]):
        done = within(["explain", *arguments, "--trace"])
        assert (done.code, "--trace needs an artifact" in done.err) == (2, True)


def test_completion_offers_models() -> None:
    env = {"_INTARSIA_COMPLETE": "complete_bash", "COMP_WORDS": "intarsia explain zoo:mn", "COMP_CWORD": "2"}
    done: Outcome = process(cwd=Path.cwd(), env=env)
    assert "mnist" in done.out
