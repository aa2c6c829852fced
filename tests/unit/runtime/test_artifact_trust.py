"""An artifact is code: what a forged one can do, and what loading it without trust makes of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.forged_artifacts import BLOB, X, is_right, manifest_of, replace_file, replace_kernels, save

from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import generate_object_code
from intarsia.runtime.artifact_load import load
from intarsia.runtime.kernel import KernelSource
from intarsia.support.errors import ArtifactError, CompileError
from intarsia.toolchain.native.toolchain import Native

WRITES_42 = """
define void @kernel(ptr %arguments, ptr %runtime) {
  %at = getelementptr ptr, ptr %arguments, i64 2
  %out = load ptr, ptr %at
  store float 42.0, ptr %out
  ret void
}
"""


def calls_system(command: str) -> bytes:
    text = f"""
declare i32 @system(ptr)
@command = private constant [{len(command) + 1} x i8] c"{command}\\00"
define void @kernel(ptr %arguments, ptr %runtime) {{
  %r = call i32 @system(ptr @command)
  ret void
}}
"""
    return generate_object_code(text, Isa.host())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("saved") / "m", "native")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return shutil.copytree(saved, tmp_path / "m")


def test_a_forged_kernel_that_would_run_a_command_is_refused(folder: Path, tmp_path: Path) -> None:
    replace_kernels(folder, calls_system(f"id > {tmp_path}/owned"))
    with pytest.raises(ArtifactError) as caught:
        load(folder)(X)
    assert str(caught.value) == (
        "this object code cannot be loaded: it calls 'system', which no kernel of Intarsia needs\n"
        "help: load the artifact with trusted=False (--untrusted), which compiles it from its source"
    )
    assert not (tmp_path / "owned").exists()


def test_a_forged_kernel_that_would_run_a_command_does_not_run_without_trust(
    folder: Path, tmp_path: Path
) -> None:
    replace_kernels(folder, calls_system(f"id > {tmp_path}/owned"))
    assert is_right(load(folder, trusted=False)(X))
    assert not (tmp_path / "owned").exists()


def test_a_forged_kernel_runs_where_it_is_trusted_and_only_there(folder: Path) -> None:
    """The list of symbols is no sandbox: this is why SECURITY.md says what it says."""
    replace_kernels(folder, generate_object_code(WRITES_42, Isa.host()))
    assert not is_right(load(folder)(X))
    assert is_right(load(folder, trusted=False)(X))


def test_without_trust_no_toolchain_gets_a_blob(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Native, source: KernelSource, blob: memoryview) -> None:
        raise AssertionError("a compiled form was loaded")

    monkeypatch.setattr(Native, "load_in_place", refuse)
    with pytest.raises(AssertionError, match="a compiled form"):
        load(folder)
    assert is_right(load(folder, trusted=False)(X))


def test_openvino_compiles_its_source_without_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino")
    folder = save(tmp_path / "m", "openvino")
    monkeypatch.setattr(
        "intarsia.toolchain.openvino.kernel.import_model", lambda blob, source: pytest.fail("imported")
    )
    replace_file(folder, BLOB, b"whatever")
    assert is_right(load(folder, trusted=False)(X))


def test_results_are_those_of_a_trusted_artifact(folder: Path) -> None:
    np.testing.assert_array_equal(load(folder, trusted=False)(X), load(folder)(X))


@pytest.mark.parametrize("memory", [None, 1 << 62])
def test_a_forged_source_whose_values_no_machine_holds_is_refused(
    folder: Path, memory: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `memory` the machine claims to have it, and the allocation fails."""
    if memory is not None:
        monkeypatch.setattr("intarsia.toolchain.native.arena.machine_memory", lambda: memory)
    name = manifest_of(folder)["kernels"][0]["source"]
    model = onnx.load_model_from_string((folder / name).read_bytes())
    result = model.graph.node[-1].output[0]
    model.graph.node[-1].output[0] = "product"
    model.graph.initializer.append(numpy_helper.from_array(np.array([2**45]), "size"))
    model.graph.node.append(helper.make_node("ConstantOfShape", ["size"], ["zeros"]))
    model.graph.node.append(helper.make_node("ReduceMax", ["zeros"], ["zero"], keepdims=0))
    model.graph.node.append(helper.make_node("Add", ["product", "zero"], [result]))
    replace_file(folder, name, model.SerializeToString())
    with pytest.raises(CompileError, match=r"values between its kernels take 134,217,\d+ MiB"):
        load(folder, trusted=False)
