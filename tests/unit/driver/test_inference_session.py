"""onnxruntime's session: the same calls give the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of, saved

import intarsia as ia
from intarsia.driver import inference_session
from intarsia.driver.inference_session import InferenceSession
from intarsia.support.errors import CompileError, InputError, UsageError

onnxruntime = pytest.importorskip("onnxruntime")

TEXT = """
g (float[n,3] x, int64[] k) => (float[n,2] y, int64[] z) {
    p = MatMul(x, w)
    y = Relu(p)
    z = Add(k, k)
}
"""
WEIGHT = np.arange(6, dtype=np.float32).reshape(3, 2) - 2
FEED = {"x": np.ones((4, 3), np.float32), "k": np.array(5)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(saved(model_of(TEXT, w=WEIGHT), tmp_path / "model.onnx"))


def described(nodes: Any) -> list[tuple[str, str, list[Any]]]:
    return [(node.name, node.type, list(node.shape)) for node in nodes]


def test_it_answers_as_onnxruntime_does(path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    providers: list[Any] = ["CUDAExecutionProvider", ("CPUExecutionProvider", {"arena": "1"})]
    theirs = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    ours = InferenceSession(path, options, providers=providers)
    assert ours.executable.kernels[0].source.target.endswith("-threads=1")
    assert described(ours.get_inputs()) == described(theirs.get_inputs())
    assert described(ours.get_outputs()) == described(theirs.get_outputs())
    assert ours.get_providers() == theirs.get_providers()
    for names in (None, [], ["z"], ["z", "y"]):
        for result, expected in zip(ours.run(names, FEED), theirs.run(names, FEED), strict=True):
            assert isinstance(result, np.ndarray)
            np.testing.assert_allclose(result, expected, rtol=1e-6)
            assert result.dtype == expected.dtype


def test_lists_and_numbers_are_converted(path: Path) -> None:
    y, z = InferenceSession(str(path)).run(None, {"x": [[1, 1, 1]], "k": 3})
    np.testing.assert_array_equal(y, [[0, 3]])
    assert z == 6


def test_sources(path: Path, tmp_path: Path) -> None:
    expected = InferenceSession(path).run(["y"], FEED)[0]
    artifact = tmp_path / "model.intarsia"
    InferenceSession(path).executable.save(artifact)
    for source in (path.read_bytes(), model_of(TEXT, w=WEIGHT), artifact, artifact.read_bytes()):
        np.testing.assert_array_equal(InferenceSession(source).run(["y"], FEED)[0], expected)
    assert InferenceSession("zoo:mnist").get_outputs()[0].shape == [1, 10]
    assert repr(InferenceSession(artifact)).startswith("InferenceSession(Executable((x: float32 (n, 3), ")


def test_wrong_names(path: Path) -> None:
    session = ia.InferenceSession(path)
    with pytest.raises(UsageError, match="there is no output 'zz'") as caught:
        session.run(["zz"], FEED)
    assert caught.value.help == "did you mean 'z'?"
    with pytest.raises(InputError, match='input "k" is missing'):
        session.run(None, {"x": FEED["x"]})


def test_files_and_providers_that_are_not_there(path: Path) -> None:
    with pytest.raises(UsageError, match="the providers are CUDAExecutionProvider, expected CPU"):
        InferenceSession(path, providers=["CUDAExecutionProvider"])
    with pytest.raises(UsageError, match=r"nothing\.onnx"):
        InferenceSession(path.parent / "nothing.onnx")


def test_the_first_toolchain_that_takes_a_model_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("g (float[2,3,3] x) => (float[2] y) { y = Det(x) }")
    (kernel,) = InferenceSession(model).executable.kernels
    assert kernel.source.toolchain == "onnxruntime"
    monkeypatch.setattr(inference_session, "TOOLCHAINS", ("native",))
    with pytest.raises(CompileError, match="no toolchain takes the model: native: native cannot compile"):
        InferenceSession(model)
