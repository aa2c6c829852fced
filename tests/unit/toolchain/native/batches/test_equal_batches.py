"""Parameters whose first axes have no name, or several, are one batch where they have to be equal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import build, from_onnx, load
from intarsia.ir import IRModule
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.runtime.kernel import Array
from intarsia.support.errors import CompileError, ExecutionError
from intarsia.target import Target

SCALED = "s = ai.onnx.ml.Scaler <offset = [0.5], scale = [2.0]> (j) y = Relu (s)"
JOINED = {
    "no names": f"g (float[?, 3] x, float[?, 1] z) => (y) {{ j = Concat <axis = 1> (x, z) {SCALED} }}",
    "two names": f"g (float[n, 3] x, float[m, 1] z) => (y) {{ j = Concat <axis = 1> (x, z) {SCALED} }}",
    "one name": f"g (float[n, 3] x, float[?, 1] z) => (y) {{ j = Concat <axis = 1> (x, z) {SCALED} }}",
    "three": f"g (float[?, 3] x, float[?, 1] z, float[?, 2] w) => (y) "
    f"{{ a = Concat <axis = 1> (x, z) j = Concat <axis = 1> (a, w) {SCALED} }}",
}
WIDTHS = {"x": 3, "z": 1, "w": 2}
APART = {
    "added": "g (float[?, 3] x, float[?, 3] z) => (y) { y = Add (x, z) }",
    "in pairs": "g (float[?, 3] x, float[?, 1] z, float[?, 3] a, float[?, 1] b) => (y, u) "
    "{ y = Concat <axis = 1> (x, z) u = Concat <axis = 1> (a, b) }",
    "names apart": "g (float[n, 3] x, float[m, 3] z) => (y, u) { y = Relu (x) u = Relu (z) }",
}


def program(text: str) -> IRModule:
    return from_onnx(model_of(text, imports='"ai.onnx.ml": 3'))


def native(mod: IRModule) -> Executable:
    return build(partition_whole(mod, Target("cpu -toolchain=native -threads=1")))


def rows(mod: IRModule, **counts: int) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    names = [param.name for param in mod["main"].params]
    return {
        name: rng.standard_normal((counts.get(name, counts["x"]), WIDTHS[name])).astype(np.float32)
        for name in names
    }


@pytest.mark.parametrize("name", sorted(JOINED))
def test_joined_parameters_are_one_batch(name: str, tmp_path: Path) -> None:
    mod = program(JOINED[name])
    with native(mod) as executable:
        executable.save(tmp_path / "p.intarsia")
    with load(tmp_path / "p.intarsia") as loaded:
        for items in (1, 7, 3, 0):
            inputs = rows(mod, x=items)
            (result,), (right,) = loaded.run_flat(**inputs), build(mod).run_flat(**inputs)
            assert isinstance(result, np.ndarray)
            assert isinstance(right, np.ndarray)
            assert result.shape == right.shape
            np.testing.assert_allclose(result, right, rtol=1e-6)


@pytest.mark.parametrize(("x", "z"), [(3, 1), (1, 3), (2, 3), (2, 0)])
def test_other_sizes_of_joined_parameters_are_an_error(x: int, z: int) -> None:
    mod = program(JOINED["no names"])
    with native(mod) as executable, pytest.raises(ExecutionError):
        executable.run_flat(**rows(mod, x=x, z=z))


@pytest.mark.parametrize("name", sorted(APART))
def test_parameters_that_may_differ_are_refused(name: str) -> None:
    with pytest.raises(CompileError, match="first axes of"):
        native(program(APART[name]))
