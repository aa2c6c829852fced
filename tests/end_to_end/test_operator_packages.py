"""An operator of a package that is installed beside Intarsia: tuned, saved, and run in new processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.end_to_end.command_line import environment, process
from tests.end_to_end.installed_packages import found_in, install_example

pytestmark = pytest.mark.processes

WRITE = """
import onnx
from ternary_mlp.models import composed_model, draw_weights, fused_model
weights = draw_weights(16, 24)
onnx.save(fused_model(2, weights), "fused.onnx")
onnx.save(composed_model(2, weights), "composed.onnx")
"""

TUNE = """
import numpy as np
import intarsia as ia
from intarsia.passes import partition_whole
from intarsia.target import Target

targets = ["native", "reference", "onnxruntime"]
result = ia.tune("fused.onnx", budget="4s", targets=targets, database="measurements.sqlite")
print(*sorted({kernel.source.toolchain for kernel in result.executable.kernels}))
result.executable.save("fused.intarsia")
for toolchain in ("native", "reference"):
    module = partition_whole(ia.from_onnx("fused.onnx"), Target(f"cpu -toolchain={toolchain}"))
    ia.build(module).save(f"{toolchain}.intarsia")
"""

RUN = """
import sys
import numpy as np
import intarsia as ia

x = np.random.default_rng(1).standard_normal((2, 16)).astype(np.float32)
expected = ia.build(ia.from_onnx("composed.onnx"), "cpu -toolchain=onnxruntime")(x)
for path in ("fused", "native", "reference"):
    np.testing.assert_allclose(ia.load(f"{path}.intarsia")(x), expected, rtol=1e-5, atol=1e-5)
    assert path == "reference" or "ternary_mlp" not in sys.modules
np.testing.assert_allclose(ia.load("native.intarsia", trusted=False)(x), expected, rtol=1e-5, atol=1e-5)
assert "ternary_mlp.operators" in sys.modules
print("right")
"""

WITHOUT = """
import numpy as np
import intarsia as ia
from intarsia.support.errors import IntarsiaError

print(ia.load("native.intarsia")(np.ones((2, 16), np.float32)).shape)
for path, trusted in (("native", False), ("reference", True)):
    try:
        ia.load(f"{path}.intarsia", trusted=trusted)
    except IntarsiaError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_example("own_operator", tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def models(example: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    printed(folder, WRITE, found_in(example))
    return folder


@pytest.fixture(scope="module")
def artifacts(example: Path, models: Path) -> Path:
    # Which toolchain is the fastest depends on the machine; only two have the operator.
    assert {"native", "reference"} & set(printed(models, TUNE, found_in(example)).split())
    return models


def printed(folder: Path, code: str, variables: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment(variables or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_artifacts_run_in_a_new_process(example: Path, artifacts: Path) -> None:
    assert printed(artifacts, RUN, found_in(example)) == "right\n"


def test_without_the_package_compiled_kernels_run_and_others_say_what_is_missing(artifacts: Path) -> None:
    shape, *rest = printed(artifacts, WITHOUT).splitlines()
    assert shape == "(2, 16)"
    assert rest == [
        "native cannot compile this: node 'y' uses the operator 'TernaryGatedMLP' of the domain 'acme', "
        "which is not one of ONNX's, and no installed package declares it",
        "help: install the package that registers it, or export the model with ONNX's own operators",
        "reference cannot compile this: the operator domain 'acme' is not one of ONNX's, and no installed "
        "package declares it",
        "help: install the package that registers its operators, or export the model with ONNX's own; "
        "declared domains: 'com.microsoft', 'com.microsoft.nchwc'",
    ]


def test_the_command_line_tunes_and_verifies_it(example: Path, models: Path) -> None:
    found = found_in(example)
    tuned = process("tune", "fused.onnx", "--budget", "3s", "--target", "native", cwd=models, env=found)
    assert tuned.code == 0, tuned.err
    assert "native" in tuned.out
    verified = process("verify", "fused.onnx", "--toolchain", "native", cwd=models, env=found)
    assert verified.code == 0, verified.out + verified.err
    missing = process("tune", "fused.onnx", "--budget", "3s", cwd=models)
    assert missing.code == 3
    assert "uses the operator 'TernaryGatedMLP' of the domain 'acme'" in missing.err
