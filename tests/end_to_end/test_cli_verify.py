"""`verify` and `compare` on models that a toolchain gets wrong, or that nobody can check."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.end_to_end.command_line import within
from tests.faulty_toolchains import FORGETFUL, Forgetful, WrongTanh
from tests.onnx_models import model_of
from tests.recurrent_layers import recurrent_model

from intarsia import build, from_onnx
from intarsia.passes import partition_whole
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.target import Target

pytest.importorskip("onnxruntime", reason="the commands are shown on two engines")
pytest.importorskip("openvino", reason="the commands are shown on two engines")


def test_verify_judges_a_scalar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = """g (float[6,5] x, float[6,5] t) => (float loss, float[6,5] error) {
        error = Sub(x, t) square = Mul(error, error) loss = ReduceMean<keepdims=0>(square) }"""
    onnx.save(model_of(text), "loss.onnx")
    outcome = within(["verify", "loss.onnx", "--toolchain", "native", "--toolchain", "onnxruntime", "--json"])
    assert outcome.code == 0, outcome.err
    assert [check["result"] for check in outcome.document["checks"]] == ["right", "right"]


def test_compare_by_layers_names_the_wrong_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = """g (float[3,4] x) => (float[3,4] y) {
        [first] a = Exp(x) [second] b = Tanh(a) [third] c = Neg(b) [last] y = Add(c, a)
    }"""
    onnx.save(model_of(graph), "m.onnx")
    with TOOLCHAINS.holding(WrongTanh.name, WrongTanh):
        names = ["m.onnx@wrong_tanh", "m.onnx@onnxruntime"]
        outcome = within(["compare", *names, "--layers", "-q"])
        document = within(["compare", *names, "--layers", "--json"]).out
    assert outcome.code == 4
    sentence = "m.onnx@wrong_tanh: the first wrong value is that of 'second' (Tanh)"
    assert outcome.err.startswith(f"error: {sentence}: ")
    assert f"{sentence}\nm.onnx@onnxruntime: no value exceeds its tolerance\n" in outcome.out
    rows = [line.split() for line in outcome.out.splitlines()[1:5]]
    assert [row[0] for row in rows] == ["first", "second", "third", "last"]
    assert [row[5] for row in rows] == ["right", "wrong:", "wrong:", "wrong:"]
    assert '"second"' in document


def test_programs_that_differ_on_large_inputs_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    declared = "g (float[16,8] x) => (float[16,8] y)"
    onnx.save(model_of(f"{declared} {{ y = Relu(x) }}"), "relu.onnx")
    clipped = model_of(f"{declared} {{ y = Clip(x, low, high) }}", low=np.float32(0), high=np.float32(100))
    onnx.save(clipped, "clipped.onnx")
    names = ["relu.onnx@onnxruntime", "clipped.onnx@onnxruntime"]
    outcome = within(["compare", *names, "--budget", "0.2", "-q"])
    assert outcome.code == 4
    assert outcome.err.startswith(
        'error: clipped.onnx@onnxruntime differs from the reference: large inputs: output "y"['
    )


def test_verify_takes_ranges_for_all_input_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "g (int32[4,8] x) => (float[4,8] y) { a = Cast<to = 1>(x) y = Log(a) }"
    onnx.save(model_of(text), "log.onnx")
    arguments = ["verify", "log.onnx", "--toolchain", "onnxruntime", "--json"]
    outcome = within([*arguments, "--range", "x=1,50"])
    assert outcome.code == 0
    assert outcome.document["reference"].endswith("inputs: ordinary, large, edges")
    # Without a range, the logarithm of 0 is infinite, and that of negative numbers is none.
    assert within(arguments).document["reference"].endswith("inputs: ordinary, ordinary 2, ordinary 3")
    assert within([*arguments, "--range", "z=1,50"]).code == 2


@pytest.mark.slow
def test_compare_draws_lengths_of_sequences_within_an_open_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines differ on lengths beyond the axis, and no result would be proven."""
    monkeypatch.chdir(tmp_path)
    model = from_onnx(recurrent_model("GRU", steps="time", batch=2, lengths=()))
    executable = build(partition_whole(model, Target.parse("cpu -toolchain=onnxruntime")))
    names = ["first.intarsia", "second.intarsia"]
    for name in names:
        executable.save(name)
    outcome = within(["compare", *names, "--shape", "x=3,2,3", "--budget", "0.05", "--json"])
    assert outcome.code == 0, outcome.err
    assert outcome.document["reference"].endswith("inputs: ordinary, large, edges")


@pytest.mark.parametrize("toolchain", FORGETFUL)
def test_verify_calls_a_toolchain_wrong_that_is_right_at_first_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: type[Forgetful]
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(model_of("g (float[3,4] x) => (float[3,4] y) { y = Relu(x) }"), "relu.onnx")
    with TOOLCHAINS.holding(toolchain.name, toolchain):
        outcome = within(["verify", "relu.onnx", "--toolchain", toolchain.name, "--json"])
    assert '"result": "wrong"' in outcome.out
    assert outcome.code == 4


def random_model(path: Path) -> None:
    onnx.save(model_of("g (float[3,4] x) => (float[3,4] y) { r = RandomNormalLike(x) y = Add(x, r) }"), path)


def test_verify_says_that_random_numbers_cannot_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    random_model(Path("random.onnx"))
    outcome = within(["verify", "random.onnx", "--toolchain", "onnxruntime", "--json"])
    assert outcome.code == 4
    assert [check["result"] for check in outcome.document["checks"]] == ["unproven"]
    note = (
        "the model draws random numbers (RandomNormalLike), and results that depend on them cannot be checked"
    )
    assert note in outcome.document["reference"]
    shown = within(["verify", "random.onnx", "--toolchain", "onnxruntime"])
    assert shown.err.startswith("error: onnxruntime cannot be checked: the expected result is unproven: ")
    assert shown.err.endswith(f"\nhelp: {note}\n")
    assert "wrong " not in shown.out + shown.err


@pytest.mark.slow
def test_compare_says_that_random_numbers_cannot_be_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    random_model(Path("random.onnx"))
    names = [f"random.onnx@{name}" for name in ("onnxruntime", "openvino")]
    shown = within(["compare", *names, "--budget", "0.05", "-q"])
    assert shown.code == 4
    assert f"error: {', '.join(names)} cannot be checked: " in shown.err
    assert "draws random numbers (RandomNormalLike)" in shown.err
    assert shown.out.count("unproven\n") == 2


def test_verify_passes_honest_engines_on_computed_indices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one table for several features, as recommenders have them."""
    monkeypatch.chdir(tmp_path)
    text = (
        "g (int64[4,3] ids) => (float[4,3,8] y) <int64[3] offsets = {0, 10, 30}> {"
        " rows = Add(ids, offsets)"
        " shape = Constant<value_ints = [60, 8]>()"
        " table = ConstantOfShape<value = float[1] {0.5}>(shape)"
        " y = Gather(table, rows) }"
    )
    onnx.save(model_of(text), "recommender.onnx")
    outcome = within(["verify", "recommender.onnx", "--json"])
    assert outcome.code == 0
    assert {check["result"] for check in outcome.document["checks"]} == {"right"}
    assert outcome.document["reference"].count("inputs: ordinary, large, edges") == 1
