"""The wheel intarsia-runtime in an empty environment: artifacts run with NumPy and nothing else.

The wheel is built and installed as users do, so that NumPy comes from the package index.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.end_to_end.command_line import environment
from tests.runtime_wheel import build_runtime_wheel

import intarsia as ia
from intarsia.frontend.zoo import build_model
from intarsia.ir import DType, Function, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.runtime.executable import Executable
from intarsia.toolchain.native.version import STORED, native_version

pytestmark = pytest.mark.processes

X = np.random.default_rng(3).standard_normal((1, 1, 28, 28)).astype(np.float32)


def run(*command: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={name: value for name, value in environment({}).items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_runtime_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("empty") / "env"
    for command in (
        (sys.executable, "-m", "venv", folder),
        (folder / "bin/python", "-m", "pip", "install", "--quiet", wheel),
    ):
        done = run(*command, folder=folder.parent)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin/python"


def build(toolchain: str) -> Executable:
    return ia.build(ia.from_onnx(build_model("mnist")), f"cpu -toolchain={toolchain} -threads=2")


def test_the_wheel_contains_no_compiler(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        requirements = [
            line.partition(": ")[2]
            for line in archive.read(metadata).decode().splitlines()
            if line.startswith("Requires-Dist: ") and "extra ==" not in line
        ]
        version = archive.read(f"intarsia/toolchain/native/{STORED}").decode().strip()
    rooms = {"/".join(name.split("/")[:2]) for name in names if name.startswith("intarsia/")}
    assert rooms == {
        "intarsia/__init__.py",
        "intarsia/py.typed",
        *(f"intarsia/{room}" for room in ("ir", "native", "runtime", "support", "target", "toolchain")),
    }
    assert requirements == ["numpy>=2.0"]
    assert version == native_version()


def test_element_types_beyond_numpy_name_the_package(python: Path, tmp_path: Path) -> None:
    x = Var("x", checked_type=TensorType((4, 8), DType.BFLOAT16))
    exe = ia.build(IRModule.from_expr(Function((x,), call("Relu", x))), "cpu -toolchain=native -threads=1")
    exe.save(tmp_path / "narrow.intarsia")
    done = run(python, "-c", "import intarsia as ia; ia.load('narrow.intarsia')", folder=tmp_path)
    assert done.returncode == 1
    assert (
        "the element type bfloat16 needs the package ml_dtypes, which is not installed\n"
        "help: pip install 'intarsia-runtime[narrow]'"
    ) in done.stderr


def test_an_artifact_runs(python: Path, tmp_path: Path) -> None:
    exe = build("native")
    exe.save(tmp_path / "mnist.intarsia")
    np.save(tmp_path / "x.npy", X)
    code = """
import json, sys
import numpy as np
import intarsia as ia

x = np.load("x.npy")
exe = ia.load("mnist.intarsia", locked=True)  # locked: what is compiled in the artifact fits
with ia.Pool(exe, streams=2, threads=1) as pool:
    results = [future.result() for future in [pool.submit(x) for _ in range(8)]]
assert all(np.array_equal(result, results[0]) for result in results)
np.save("y.npy", exe(x))
assert np.allclose(np.load("y.npy"), results[0], atol=1e-5)
profile = exe.profile(x)
compiler = [name for name in ("onnx", "llvmlite", "ml_dtypes", "safetensors", "lark") if name in sys.modules]
public = [name for name in dir(ia) if not name.startswith("__")]
print(json.dumps([compiler, public, "conv_relu" in str(profile)]))
"""
    done = run(python, "-c", code, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    expected: list[Any] = [
        [],
        ["Executable", "IntarsiaError", "Pool", "Target", "VirtualDevice", "load", "to_dlpack"],
        True,
    ]
    assert json.loads(done.stdout) == expected
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.asarray(exe(X)))


@pytest.mark.parametrize(
    ("toolchain", "code", "message"),
    [
        (
            "onnxruntime",
            "ia.load('m.intarsia')",
            'there is no toolchain "onnxruntime" here\n'
            "  needed by m.intarsia\n"
            "help: pip install 'intarsia[onnxruntime]'; known: native",
        ),
        (
            "native",
            "ia.load('m.intarsia', trusted=False)",
            "a kernel of native must be compiled again for this machine, and intarsia-runtime contains no "
            "compiler\n  m.intarsia is not trusted\nhelp: pip install 'intarsia[native]'",
        ),
        (
            "native",
            "ia.tune('m.onnx')",
            "intarsia.tune needs the compiler, which intarsia-runtime does not contain\n"
            "help: pip install intarsia",
        ),
    ],
)
def test_what_needs_more_says_what_to_install(
    python: Path, tmp_path: Path, toolchain: str, code: str, message: str
) -> None:
    build(toolchain).save(tmp_path / "m.intarsia")
    done = run(python, "-c", f"import intarsia as ia; {code}", folder=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
