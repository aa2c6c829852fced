"""Programs of the command line: random inputs of an artifact."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.onnx_models import model_of

from intarsia import from_onnx
from intarsia.cli.arguments.model import ModelArgument
from intarsia.cli.arguments.program import Program, compile_whole, load_artifact
from intarsia.target.reference import REFERENCE_TARGET

MODEL = """g (float[steps, batch] x, int64[batch] lengths, int64[n] rows)
    => (float[steps, batch] y, float[n, 2] z)
    <float[3, 2] table = {1, 2, 3, 4, 5, 6}> {
        y = ReverseSequence <time_axis = 0, batch_axis = 1> (x, lengths)
        z = Gather (table, rows)
    }"""


@pytest.fixture
def artifact(tmp_path: Path) -> Program:
    module = from_onnx(model_of(MODEL))
    compile_whole(module, REFERENCE_TARGET).save(tmp_path / "m.intarsia")
    shapes = {"x": (2, 40), "lengths": (40,), "rows": (60,)}
    return load_artifact(ModelArgument.parse(str(tmp_path / "m.intarsia")), shapes)


def test_random_integers_follow_their_use_in_an_artifact_too(artifact: Program) -> None:
    arrays = artifact.inputs([], 0, pytest.fail)
    assert set(arrays["lengths"].tolist()) == {1, 2}
    assert set(arrays["rows"].tolist()) == {0, 1, 2}


def test_the_program_of_an_artifact_is_that_without_its_partition(artifact: Program) -> None:
    module = artifact.module
    assert [var.name for var in module.graph_functions] == ["main"]
    assert "Compiler" not in module["main"].attrs
