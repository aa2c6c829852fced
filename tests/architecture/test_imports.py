"""What is loaded when: `import intarsia` is light, a saved artifact runs without the compiler's libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import intarsia as ia
from intarsia.ir import DType, Function, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.passes import partition_whole
from intarsia.support.environment import PROGRAM_CACHE

HEAVY = (
    "onnx",
    "onnxruntime",
    "openvino",
    "torch",
    "rich",
    "typer",
    "lark",
    "ml_dtypes",
    "lightgbm",
    "sqlalchemy",
)


def loaded_by(code: str) -> set[str]:
    """Top-level packages in a fresh process after running `code`."""
    program = f"{code}\nimport json, sys\nprint(json.dumps([name.split('.')[0] for name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_is_light() -> None:
    assert loaded_by("import intarsia") & set(HEAVY) == set()


def test_records_of_measurements_need_no_database() -> None:
    program = (
        "import sys\nfrom intarsia.measure.database import MeasureRecord, Hint, Statistics\n"
        "assert 'sqlalchemy' not in sys.modules\nfrom intarsia.measure.database import Database"
    )
    assert "sqlalchemy" in loaded_by(program)


def test_public_names_of_the_design() -> None:
    for name in (
        "from_onnx",
        "to_onnx",
        "targets",
        "build",
        "load",
        "tune",
        "Executable",
        "IRModule",
        "Target",
        "PassContext",
        "Sequential",
        "get_pass",
        "load_pass_sequence",
    ):
        assert callable(getattr(ia, name)), name
    import intarsia.build
    import intarsia.driver.progress  # noqa: F401  # importing submodules must not hide the functions

    assert callable(ia.build)
    assert callable(ia.tune)


@pytest.mark.slow
@pytest.mark.parametrize("toolchain", ["onnxruntime", "openvino"])
def test_a_saved_artifact_runs_without_the_compilers_libraries(tmp_path: Path, toolchain: str) -> None:
    x = Var("x", checked_type=TensorType((2, 3), DType.FLOAT32))
    module = IRModule.from_expr(Function((x,), call("Relu", x)))
    path = tmp_path / "relu.intarsia"
    ia.build(partition_whole(module, ia.Target.for_toolchain(toolchain))).save(path)
    code = f"""
import numpy as np, intarsia
exe = intarsia.load({str(path)!r})
assert exe(np.full((2, 3), -1, np.float32)).max() == 0
"""
    assert loaded_by(code) & {"rich", "typer", "lark", "torch"} == set()
    np.testing.assert_array_equal(ia.load(path)(np.ones((2, 3), np.float32)), np.ones((2, 3), np.float32))


@pytest.mark.slow
def test_a_program_of_kept_kernels_imports_nothing_that_makes_loops(tmp_path: Path) -> None:
    code = """
import json, sys
from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.passes import partition_whole
from intarsia.target import Target
build(partition_whole(from_onnx(build_model("mnist")), Target.for_toolchain("native", threads=1)))
print(json.dumps([".".join(name.split(".")[:3]) for name in sys.modules]))
"""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), PROGRAM_CACHE: "0"}
    makers = {f"intarsia.native.{name}" for name in ("emission", "loop_state", "lowering", "schedule", "tir")}
    for expected in (makers, set()):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert makers & set(json.loads(done.stdout.splitlines()[-1])) == expected
