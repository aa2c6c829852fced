"""Models with symbolic dimensions from the command line: one artifact for every size of a range."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.end_to_end.command_line import Outcome, process, within
from tests.onnx_models import model_of

from intarsia import from_onnx, load
from intarsia.collage.placement.plan import Plan
from intarsia.driver.shape_samples import sized_program
from intarsia.measure.candidate_kind import WHOLE
from intarsia.support.callbacks import silent
from intarsia.support.errors import InputError
from intarsia.target import Target
from intarsia.tune.choice import Choice
from intarsia.tune.tuned_candidate import tuned_candidate

pytest.importorskip("onnxruntime", reason="an engine that takes every size")

MODEL = model_of("g (float[batch, 16] x) => (float[batch, 16] y) { y = Softmax (x) }")
TUNE = (
    "tune",
    "m.onnx",
    "--target",
    "onnxruntime",
    "--target",
    "reference",
    "--budget",
    "20",
    "-o",
    "m.intarsia",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sizes")
    onnx.save(MODEL, path / "m.onnx")
    return path


@pytest.fixture(scope="module")
def tuned(folder: Path) -> Outcome:
    outcome = process(*TUNE, "--shape", "batch=1..6", "--seed", "0", cwd=folder)
    assert outcome.code == 0, outcome.err
    return outcome


@pytest.mark.processes
def test_sizes_of_the_range_are_timed_and_checked(tuned: Outcome) -> None:
    assert "usual sizes: batch=4; others: batch=1; batch=6; batch=2; batch=3" in tuned.out
    if " 1.000 " in tuned.out and re.search(r"^sizes ", tuned.out, re.MULTILINE):  # both have raced
        rows = re.findall(r"^batch=\d+ .*", tuned.out, re.MULTILINE)
        assert [row.split()[0] for row in rows] == ["batch=1", "batch=4", "batch=6"]


@pytest.mark.processes
def test_the_artifact_takes_each_size_of_the_range_and_no_other(tuned: Outcome, folder: Path) -> None:
    x = np.random.default_rng(0).standard_normal((7, 16)).astype(np.float32)
    with load(folder / "m.intarsia") as executable:
        for rows in (6, 1, 3, 6):
            y = executable(x[:rows])
            assert isinstance(y, np.ndarray)
            np.testing.assert_allclose(y.sum(axis=1), np.ones(rows), rtol=1e-5)
        with pytest.raises(InputError, match='dimension "batch" is 7 in input "x", expected 1 to 6'):
            executable(x)


@pytest.mark.processes
def test_run_and_verify_need_no_shapes(tuned: Outcome, folder: Path) -> None:
    ran = process("run", "m.intarsia", cwd=folder)
    assert ran.code == 0
    assert "note: random inputs have the sizes of the self test: --shape x=4,16" in ran.err
    verified = process("verify", "m.intarsia", cwd=folder)
    assert verified.code == 0, verified.err
    assert "batch=6" in verified.out


@pytest.mark.processes
def test_a_model_is_run_with_usual_sizes(folder: Path) -> None:
    for command in ("run", "bench", "profile", "bisect"):
        outcome = process(command, "m.onnx", cwd=folder)
        assert outcome.code == 0, outcome.err
        assert "note: no --shape: batch=4" in outcome.err


@pytest.mark.processes
def test_sizes_of_dimensions_by_name(tuned: Outcome, folder: Path) -> None:
    for command in ("run", "verify", "bench", "profile"):
        for model in ("m.intarsia", "m.onnx"):
            outcome = process(command, model, "--shape", "batch=2", cwd=folder)
            assert outcome.code == 0, outcome.err
    wrong = process("run", "m.intarsia", "--shape", "bath=2", cwd=folder)
    assert wrong.code == 2
    assert "there is no input 'bath'\nhelp: the inputs: x; its symbolic dimensions: batch" in wrong.err


@pytest.mark.processes
def test_an_artifact_with_a_variant(folder: Path) -> None:
    """A plan says which sizes have a variant; without one it depends on the machine."""
    sized = sized_program(from_onnx(folder / "m.onnx"), {"batch": "1:0.5,4:0.5"}, {}, silent)
    choice = Choice("SpecializeSizes", {"sizes": ["batch=4"], "target": "cpu -toolchain=native"})
    candidate = tuned_candidate((("SpecializeSizes: batch=4 on native", choice),), WHOLE)
    target = Target("cpu -toolchain=onnxruntime")
    Plan.of_candidate(sized.module, candidate, target).write(folder / "plan.json")
    locked = ("--locked", "--plan", "plan.json", "-o", "variant.intarsia")
    outcome = process("tune", "m.onnx", "--shape", "batch=1:0.5,4:0.5", *locked, cwd=folder)
    assert outcome.code == 0, outcome.err
    with load(folder / "variant.intarsia") as executable:
        assert [variant.sizes for variant in executable.plan.variants] == [{"batch": 4}]
        for rows, toolchain in ((4, "native"), (1, "onnxruntime"), (3, "onnxruntime"), (4, "native")):
            x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
            np.testing.assert_allclose(executable(x).sum(axis=1), np.ones(rows), rtol=1e-5)
            assert {row.toolchain for row in executable.profile(x, repeats=1).rows} == {toolchain}
    verified = process("verify", "variant.intarsia", cwd=folder)
    assert verified.code == 0, verified.err
    assert "batch=4" in verified.out
    explained = process("explain", "variant.intarsia", cwd=folder)
    assert "SpecializeSizes: batch=4 on native" in explained.out


@pytest.mark.processes
@pytest.mark.parametrize("mode", ["eager", "none"])
def test_named_sizes_may_have_variants(folder: Path, mode: str) -> None:
    words = ("--shape", "batch=1:0.5,5:0.5", "--dynamic", mode, "-o", f"{mode}.intarsia")
    outcome = process(*TUNE, *words, cwd=folder)
    assert outcome.code == 0, outcome.err
    with load(folder / f"{mode}.intarsia") as executable:
        sizes = [variant.sizes["batch"] for variant in executable.plan.variants]
        assert set(sizes) <= ({1, 5} if mode == "eager" else set())
        for rows in (1, 5, 2):
            x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
            np.testing.assert_allclose(executable(x).sum(axis=1), np.ones(rows), rtol=1e-5)


@pytest.mark.slow
def test_a_model_without_sizes_gets_usual_ones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    outcome = within([*TUNE, "-o", "usual.intarsia"])
    assert outcome.code == 0
    assert "tuned for batch=1..8; --shape gives others" in outcome.err
    fixed = within([*TUNE, "-o", "fixed.intarsia", "--shape", "batch=3"])
    assert fixed.code == 0
    with load(folder / "fixed.intarsia") as executable:
        assert executable.inputs[0].shape == (3, 16)


def test_a_dimension_that_the_model_lacks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    outcome = within([*TUNE, "--shape", "bath=1..8"])
    assert outcome.code == 2
    assert "error: the model has no symbolic dimension 'bath'\nhelp: its symbolic dimensions: 'batch'" in (
        outcome.err
    )
