"""The profiler of every toolchain: nodes, sums and results, and that the kernel stays as it is."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of

import intarsia as ia
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel_profiler import ProfilableKernel
from intarsia.target import Target

NAMES = {"conv", "relu", "pool", "flat", "dense"}
X = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
WEIGHTS: dict[str, Any] = {
    "w": np.random.default_rng(1).standard_normal((16, 3, 3, 3)).astype(np.float32),
    "v": np.random.default_rng(2).standard_normal((4096, 600)).astype(np.float32),
}
GRAPH = """g (float[1,3,32,32] x) => (float[1,600] y) {
    [conv] c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
    [relu] r = Relu(c)
    [pool] p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r)
    [flat] f = Flatten(p)
    [dense] y = MatMul(f, v)
}"""


def built(toolchain: str) -> Executable:
    pytest.importorskip({"native": "llvmlite"}.get(toolchain, toolchain))
    module = ia.from_onnx(model_of(GRAPH, **WEIGHTS))
    return ia.build(partition_whole(module, Target.for_toolchain(toolchain, threads=1)))


@pytest.mark.parametrize("toolchain", ["native", "onnxruntime", "openvino"])
def test_rows_name_all_nodes_and_add_up(toolchain: str) -> None:
    with built(toolchain) as exe:
        before = exe(X)
        kernel = exe.kernels[0]
        profile = exe.profile(X, repeats=4, warmup=1)
        assert exe.kernels[0] is kernel
        np.testing.assert_array_equal(exe(X), before)
    assert {node.name for row in profile.rows for node in row.kernel.nodes} == NAMES
    anchors = {row.kernel.anchor.name for row in profile.rows if row.kernel.anchor is not None}
    assert {"conv", "dense"} <= anchors
    by_anchor = {row.kernel.anchor.name: row for row in profile.rows if row.kernel.anchor is not None}
    assert by_anchor["conv"].kernel.work is not None
    # the taps beside the image do not count: 94 of 96 rows and columns of taps lie within it
    assert by_anchor["conv"].kernel.work.flop == 2 * 16 * 3 * 94 * 94
    assert by_anchor["dense"].flop == pytest.approx(2 * 4096 * 600 * by_anchor["dense"].calls)
    assert {row.toolchain for row in profile.rows} == {toolchain}
    assert profile.kernel_seconds + profile.overhead_seconds == pytest.approx(profile.seconds)
    json.dumps(profile.to_json())
    json.loads(profile.to_chrome_trace())


@pytest.mark.parametrize("toolchain", ["native", "onnxruntime", "openvino"])
def test_a_profiler_computes_the_same_and_leaves_nothing_behind(
    toolchain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with built(toolchain) as exe:
        (kernel,) = exe.kernels
        assert isinstance(kernel, ProfilableKernel)
        expected = kernel.run([X], [None])[0]
        profiler = kernel.start_profiler()
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(profiler.run([X], [None])[0]), np.asarray(expected))
        profiler.forget_runs()
        profiler.run([X], [None])
        runs = profiler.stop()
    assert len(runs.runs) == 1
    assert {event.kernel for event in runs.runs[0]} <= set(range(len(runs.kernels)))
    assert not list(tmp_path.iterdir())


def test_an_engine_without_a_profiler_has_one_row_with_all_nodes() -> None:
    module = ia.from_onnx(model_of(GRAPH, **WEIGHTS))
    profile = ia.build(partition_whole(module, Target("cpu -toolchain=reference"))).profile(X, repeats=2)
    (row,) = profile.rows
    assert {node.name for node in row.kernel.nodes} == NAMES
    assert (row.toolchain, row.kernel.name, row.calls) == ("reference", "reference", 1)
    assert row.flop == 2 * 16 * 3 * 94 * 94 + 2 * 4096 * 600


def test_an_artifact_keeps_the_names(tmp_path: Path) -> None:
    with built("native") as exe:
        exe.save(tmp_path / "model.intarsia")
    with ia.load(tmp_path / "model.intarsia") as loaded:
        profile = loaded.profile(X, repeats=2, warmup=1)
    assert {node.name for row in profile.rows for node in row.kernel.nodes} == NAMES


def test_without_profiles_inside_there_is_one_row_for_each_kernel_of_the_plan() -> None:
    with built("native") as exe:
        (row,) = exe.profile(X, repeats=2, inside=False).rows
    assert row.part == row.kernel.name
