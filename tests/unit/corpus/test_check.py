"""A model is checked by one process and its artifacts are loaded by another; both serve several models."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from corpus.check_corpus import _check, _find_torch, _pool, _times, _unusable_toolchains
from corpus.model_cache import Entry
from corpus.recipe import recipes
from corpus.verdict import Verdict

from intarsia.toolchain import Available, ToolchainStatus, Unavailable


def entry(folder: Path) -> Entry:
    """A cached model of one operator."""
    folder.mkdir()
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 8]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "relu", [x], [y])
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10, producer_name="test"
    )
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "inputs.npz", x=np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8))
    (folder / "model.json").write_text(json.dumps({"opset": 17, "operators": {"Relu": 1}}))
    return Entry(folder)


@pytest.mark.slow
def test_two_processes_serve_several_models(tmp_path: Path) -> None:
    recipe, pids = recipes()["resnet"], []
    with _pool(1) as checking, _pool(1) as loading:
        for number in range(2):
            verdict = _check(
                recipe, entry(tmp_path / f"model{number}"), tmp_path / f"steps{number}", checking, loading
            )
            assert verdict.problems == ()
            assert verdict.status("native") == verdict.status("native artifact") == "right"
            assert set(verdict.seconds) == set(verdict.outcomes)
            pids.append((checking.worker_pids(), loading.worker_pids()))
    assert pids[0] == pids[1]
    assert not set(pids[0][0]) & set(pids[0][1])


def test_times_are_summed_by_step_and_model() -> None:
    seconds = {"native": 2.0, "native artifact": 0.4, "openvino artifact": 0.8}
    verdicts = [Verdict(recipes()[name], {}, {}, seconds) for name in ("resnet", "vit")]
    assert _times(verdicts) == "seconds by step: native 4, artifacts 2\nslowest models: resnet 3, vit 3"


def test_torch_is_found_behind_the_packages_of_this_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, python = tmp_path / "lib/python3.11/site-packages", tmp_path / "bin/python"
    for folder in (packages, python.parent):
        folder.mkdir(parents=True)
    python.symlink_to(sys.executable)  # of an environment: its folder counts, and not where it leads to
    before = list(sys.path)
    monkeypatch.setattr(sys, "path", list(before))
    _find_torch(python)
    assert sys.path == [*before, str(packages)]


def test_a_toolchain_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = (
        ToolchainStatus("native", Available("1")),
        ToolchainStatus("torch", Unavailable("it is not installed", "install it")),
        ToolchainStatus("another", Unavailable("it is not installed", "install it")),
    )
    monkeypatch.setattr("corpus.check_corpus.installed_toolchains", lambda: statuses)
    assert list(_unusable_toolchains()) == ["toolchain 'torch' is not usable here: it is not installed"]
