"""The commands on small models, as processes, from a model to a saved artifact and back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.end_to_end.command_line import Outcome, process, within
from tests.onnx_models import model_of

from intarsia import __version__, build, from_onnx
from intarsia.cli.reports.array_summary import HEADERS
from intarsia.ir import TensorType
from intarsia.runtime.self_test import SelfTest

pytest.importorskip("onnxruntime", reason="the commands are shown on two engines")
pytest.importorskip("openvino", reason="the commands are shown on two engines")

# A busy machine must have time for a race, too.
TUNE = ("tune", "mnist.onnx", "--budget", "8", "-o", "tuned.intarsia")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with mnist.onnx."""
    path = tmp_path_factory.mktemp("cli")
    exported = process("zoo", "export", "mnist", cwd=path)
    assert exported == Outcome(0, "wrote mnist.onnx (25.6 KB)\n", "")
    return path


@pytest.fixture(scope="module")
def tuned(folder: Path) -> Outcome:
    """What tuning it printed."""
    outcome = process(*TUNE, cwd=folder)
    assert outcome.code == 0, outcome.err
    return outcome


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with mnist.onnx and what is chosen of one toolchain in little time, as tuned.intarsia."""
    path = tmp_path_factory.mktemp("artifact")
    within(["zoo", "export", "mnist", "-o", str(path / "mnist.onnx")])
    model, file = (str(path / name) for name in ("mnist.onnx", "tuned.intarsia"))
    outcome = within(["tune", model, "-o", file, "--budget", "0.2", "--target", "onnxruntime", "-q"])
    assert outcome.code == 0, outcome.err
    return path


@pytest.fixture
def here(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder as the current one, with mnist.onnx and tuned.intarsia in it."""
    monkeypatch.chdir(artifact)
    return artifact


@pytest.mark.processes
def test_tune_prints_a_table_and_what_it_wrote(folder: Path, tuned: Outcome) -> None:
    table, rest = tuned.out.split("\n\n")
    header, *rows = table.splitlines()
    assert header.split("  ")[0] == "model"
    assert re.findall(r"\S+(?: \S+)*", header) == [
        "model",
        "toolchain",
        "median latency",
        "ratio to the best",
        "max error",
        "chosen",
    ]
    named = {row.split()[1] for row in rows} - {"torch"}  # torch is an extra
    assert named == {"native", "onnxruntime", "openvino", "reference"}
    # Where each other toolchain took over three times as long, as on a busy machine, none races.
    # A few seconds suffice for a joint decision that wins, or a mix: "native tuned", "native 2, openvino 1".
    engine = r"(native|onnxruntime|openvino)( \d+)?"
    assert re.fullmatch(
        rf"mnist  {engine}(, {engine})*( tuned)?( \(\d+\))? +"
        r"[\d.]+ (us|ms) +(1\.000|measured) +\d\.\de-\d\d +yes",
        rows[0],
    )
    assert not any(row.endswith("yes") for row in rows[1:])
    lines = rest.splitlines()
    assert [re.sub(r"\d\.\de-\d\d", "N", line) for line in lines[-4:-2]] == [
        "reference result: onnx.reference, confirmed by onnxruntime without optimisations (difference N); "
        "inputs: ordinary, large, edges",
        "max error: largest difference to the reference result, relative to its largest value "
        "(errors beside a larger value hide in it, but not from the verdict)",
    ]
    assert re.fullmatch(r"wrote tuned\.intarsia \([\d.]+ (KB|MB)\)", lines[-2])
    assert lines[-1] == "run it: intarsia run tuned.intarsia"
    assert sorted(path.name for path in folder.iterdir()) == ["mnist.onnx", "tuned.intarsia"]


@pytest.mark.processes
def test_tune_tells_its_progress_line_by_line(tuned: Outcome) -> None:
    lines = [re.sub(r"^\[\d+\.\ds\] ", "", line) for line in tuned.err.splitlines()]
    steps = [line for line in lines if not line.startswith("note: ")]
    assert steps[0] == "importing the model"
    assert steps[1] == "computing the reference result"
    assert steps[2] == "measuring 0 of 4"
    assert any(re.match(r"measuring 4 of 4, best [\d.]+ (us|ms)", step) for step in steps)
    assert (steps[-1] == "racing the best") == bool(re.search(r"^mnist .* 1\.000 ", tuned.out, re.MULTILINE))
    assert len(set(steps)) == len(steps)


@pytest.mark.slow
def test_tune_as_json(here: Path) -> None:
    outcome = within(
        [*TUNE, "--json", "--target", "openvino", "--target", "cpu -toolchain=onnxruntime -threads=1"]
    )
    assert outcome.code == 0
    document = outcome.document
    assert document["file"] == "tuned.intarsia"
    assert {(each["toolchain"], each["target"]) for each in document["candidates"]} >= {
        ("openvino", "cpu -toolchain=openvino"),
        ("onnxruntime", "cpu -toolchain=onnxruntime -threads=1"),
    }
    assert all(each["verified"] for each in document["candidates"][:2])
    assert [row["chosen"] for row in document["candidates"]].index(True) == 0


@pytest.mark.slow
def test_a_required_latency_that_is_not_reached(here: Path) -> None:
    outcome = within(
        ["tune", "zoo:mnist", "--budget", "0.2", "--target", "onnxruntime", "-q", "--require-latency", "1e-6"]
    )
    assert outcome.code == 5
    assert re.fullmatch(
        r"error: mnist takes [\d.]+ (us|ms) with onnxruntime, required at most 1e-06 ms\n", outcome.err
    )
    assert (here / "mnist.intarsia").is_file()  # what was found is kept
    (here / "mnist.intarsia").unlink()


@pytest.mark.processes
@pytest.mark.usefixtures("here")
def test_the_artifact_computes_what_the_model_computes() -> None:
    runs = [
        within(["run", what, "--seed", "3", "--json"]).document
        for what in ("tuned.intarsia", "mnist.onnx@reference")
    ]
    found, expected = (run["outputs"][0] for run in runs)
    assert (found["name"], found["dtype"], found["shape"]) == ("logits", "float32", [1, 10])
    for key in ("min", "mean", "max", "first"):
        np.testing.assert_allclose(found[key], expected[key], rtol=1e-3)
    assert runs[1]["toolchain"] == "reference"


def test_an_artifact_is_known_by_its_content(here: Path) -> None:
    (here / "disguised.onnx").write_bytes((here / "tuned.intarsia").read_bytes())
    outcome = within(["run", "disguised.onnx"])
    (here / "disguised.onnx").unlink()
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[0].split() == [*HEADERS[:-1], "first", "values"]
    assert outcome.out.splitlines()[1].startswith("logits  float32  1x10")


def test_inputs_and_outputs_in_files(here: Path) -> None:
    np.savez("in.npz", x=np.ones((1, 1, 28, 28), np.float32))
    np.save("in.npy", np.ones((1, 1, 28, 28), np.float32))
    for file, result in (("in.npz", "a.npz"), ("x=in.npy", "b.npz"), ("in.npy", "c.npz")):
        outcome = within(["run", "tuned.intarsia", "--input", file, "--output", result])
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.endswith(f"\n\nwrote {result} (306 B)\n")
    loaded = [np.load(name)["logits"] for name in ("a.npz", "b.npz", "c.npz")]
    assert loaded[0].shape == (1, 10)
    assert all(np.array_equal(loaded[0], other) for other in loaded[1:])


def test_inputs_that_are_missing_are_random(here: Path) -> None:
    within(["zoo", "export", "bert_tiny"])
    first, *others = from_onnx("bert_tiny.onnx")["main"].params
    assert others
    assert isinstance(first.checked_type, TensorType)
    np.save("one.npy", np.zeros(first.checked_type.static_shape, np.int64))
    outcome = within(["run", "bert_tiny.onnx", "--input", f"{first.name}=one.npy"])
    assert outcome.code == 0
    names = ", ".join(param.name for param in others)
    assert outcome.err == f"note: no --input for {names}: random numbers (seed 0)\n"


@pytest.mark.slow
def test_verify(here: Path) -> None:
    for model, names in {
        "tuned.intarsia": None,
        "mnist.onnx": {"native", "onnxruntime", "openvino"},
        "mnist.onnx@openvino": {"openvino"},
    }.items():
        outcome = within(["verify", model, "--json"])
        checks = outcome.document["checks"]
        assert outcome.code == 0
        assert all(check["verified"] and check["result"] == "right" for check in checks)
        found = {check["name"] for check in checks}
        assert found == names if names else "self test" in found


def test_verify_names_the_worst_element(here: Path) -> None:
    from intarsia.runtime.artifact_load import load
    from intarsia.runtime.self_test import SelfTest

    executable = load("tuned.intarsia")
    test = executable.saved_test
    assert test is not None
    wrong = test.outputs[0].copy()
    wrong[0, 3] = 1000.0
    executable.save("wrong.intarsia", self_test=SelfTest(test.inputs, (wrong,)))
    outcome = within(["verify", "wrong.intarsia"])
    assert outcome.code == 4
    assert re.fullmatch(
        r'error: self test differs from the reference: output "logits"\[0, 3\] is -?[\d.]+, expected 1000 '
        r"\(allowed difference [\d.e-]+\)\n",
        outcome.err,
    )
    assert outcome.out.splitlines()[2].split()[:3] == ["self", "test", "wrong"]


def test_compare(here: Path) -> None:
    programs = ["tuned.intarsia", "mnist.onnx", "--toolchain", "openvino"]
    outcome = within(["compare", *programs, "--budget", "0.2", "--json"])
    document = outcome.document
    assert outcome.code == 0
    assert [each["program"] for each in document["programs"]] == ["tuned.intarsia", "mnist.onnx@openvino"]
    assert document["best"] in {"tuned.intarsia", "mnist.onnx@openvino"}
    for each in document["programs"]:
        low, high = each["ratio_interval"]
        assert each["verified"]
        assert low <= each["ratio"] <= high


@pytest.mark.slow
def test_programs_that_differ(here: Path) -> None:
    within(["zoo", "export", "mnist", "--seed", "1", "-o", "other.onnx"])
    outcome = within(["compare", "mnist.onnx", "other.onnx", "--budget", "0.2", "-q"])
    assert outcome.code == 4
    assert outcome.err.startswith('error: other.onnx differs from the reference: output "logits"[0, ')
    assert [line.split()[-1] for line in outcome.out.splitlines()[1:3]] == ["right", "wrong"]


def test_an_artifact_with_string_inputs_runs_on_those_of_its_self_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "g (string[2] x, float[2] a) => (string[2] y, float[2] b) { y = Identity(x) b = Abs(a) }"
    exe = build(from_onnx(model_of(text)))
    words, numbers = np.array(["Bern", "Oslo"], object), np.array([-1, 2], np.float32)
    exe.save("words.intarsia", self_test=SelfTest((words, numbers), (words, np.abs(numbers))))
    assert within(["run", "words.intarsia", "--output", "results.npz"]).code == 0
    with np.load("results.npz", allow_pickle=True) as results:
        assert results["y"].tolist() == ["Bern", "Oslo"]
        assert results["b"].tolist() != [1, 2]  # numbers are random
    np.save("x.npy", np.array(["Rome", "Riga"]))
    assert "Rome Riga" in within(["run", "words.intarsia", "--input", "x=x.npy"]).out


def test_bench(here: Path) -> None:
    outcome = within(["bench", "tuned.intarsia", "--profile", "--budget", "0.1", "--json"])
    assert outcome.code == 0
    (found,) = outcome.document["programs"]
    low, high = found["latency_interval"]
    assert 0 < low <= found["latency_seconds"] <= high
    assert {kernel["toolchain"] for kernel in found["profile"]["kernels"]} == {"onnxruntime"}
    assert found["profile"]["end_to_end_seconds"] > 0
    shown = within(["bench", "tuned.intarsia", "mnist.onnx@reference", "--profile", "--budget", "0.1", "-q"])
    assert "kernels of mnist.onnx@reference:" in shown.out


def test_profile(here: Path) -> None:
    names = ["tuned.intarsia", "mnist.onnx@native"]
    outcome = within(["profile", *names, "--runs", "4", "--json"])
    assert outcome.code == 0
    for program in outcome.document["programs"]:
        nodes = {node["name"] for kernel in program["kernels"] for node in kernel["nodes"]}
        assert {"block1/conv", "block2/conv", "dense"} <= nodes
        assert all(kernel["flop"] is None or kernel["flop"] >= 0 for kernel in program["kernels"])
    shown = within(["profile", *names, "--runs", "4", "--by", "module", "--top", "1", "-q"])
    assert "kernels of mnist.onnx@native:\n" in shown.out
    assert "... " in shown.out
    compared = within(["profile", *names, "--runs", "4", "--compare", "-q"])
    assert compared.code == 0
    rows = {line.split("  ")[0] for line in compared.out.splitlines()}
    assert {"outside of kernels", "end to end"} <= rows
    # How many operators its kernel fuses depends on the program that won.
    assert any(row.startswith("block1/conv") for row in rows)


def test_the_trace_of_a_profile(here: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    outcome = within(["profile", "mnist.onnx@native", "--runs", "4", "--trace", str(file), "-q"])
    assert outcome.code == 0
    assert f"wrote {file}: open it in" in outcome.out
    events = json.loads(file.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    (whole,) = (event for event in slices if event["name"] == "main_native")
    inside = [event for event in slices if event["cat"] == "native"]
    assert ["block1/conv" in event["args"].get("nodes", ()) for event in inside].count(True) == 1
    for event in inside:
        assert whole["ts"] <= event["ts"] <= event["ts"] + event["dur"] <= whole["ts"] + whole["dur"]
    host, *workers = sorted(event["args"]["name"] for event in events if event["ph"] == "M")
    assert host == "host"
    assert all(name.startswith("host worker ") for name in workers)


def test_zoo() -> None:
    document = within(["zoo", "list", "--json"]).document
    names = [model["name"] for model in document["models"]]
    assert {"squeezenet", "mnist", "bert_base", "gpt2", "dcgan", "mobilenet_v2", "resnext50"} <= set(names)
    lines = within(["zoo", "list"]).out.splitlines()
    assert [line.split()[0] for line in lines[1 : len(names) + 1]] == names


def test_doctor() -> None:
    document = within(["doctor", "--json"]).document
    assert document["intarsia"] == __version__
    assert document["engines"] == ["native", "onnxruntime", "openvino"]
    names = {each["name"] for each in document["toolchains"]}
    assert names - {"torch", "tensorrt"} == {"native", "onnxruntime", "openvino", "reference"}
    shown = within(["doctor"]).out
    assert document["host"]["cpu_model"] in shown
    assert shown.endswith("ready: native, onnxruntime, openvino\n")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("command", ["bench", "compare"])
@pytest.mark.parametrize(("option", "value"), [("--threads", "2"), ("--toolchain", "openvino")])
def test_what_is_chosen_for_models_does_not_go_with_artifacts_alone(
    command: str, option: str, value: str
) -> None:
    names = ["tuned.intarsia"] if command == "bench" else ["tuned.intarsia", "./tuned.intarsia"]
    assert within([command, *names, option, value]) == Outcome(
        2,
        "",
        f"error: {option} cannot be used with tuned.intarsia: it is an artifact, compiled already\n"
        f"help: pass {option} to intarsia tune, or use the model itself\n",
    )


@pytest.mark.slow
def test_the_shell_completes_names(tmp_path: Path) -> None:
    words = {
        "COMP_WORDS": "intarsia zoo export mnis",
        "COMP_CWORD": "3",
        "_INTARSIA_COMPLETE": "complete_bash",
    }
    assert process(cwd=tmp_path, env=words) == Outcome(0, "mnist\n", "")
    broken_at_the_colon = {**words, "COMP_WORDS": "intarsia tune zoo : mnis", "COMP_CWORD": "4"}
    assert process(cwd=tmp_path, env=broken_at_the_colon) == Outcome(0, "mnist\n", "")
