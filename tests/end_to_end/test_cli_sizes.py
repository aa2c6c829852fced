"""Models with symbolic dimensions from the command line: one artifact for every size of a range."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.end_to_end.command_line import Outcome, process, within
from tests.onnx_models import model_of

from intarsia import load
from intarsia.support.errors import InputError

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
    "1",
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
