"""The cache of code for shapes has a limit where shapes are open."""

from __future__ import annotations

import pytest
from tests.onnx_models import model_of

from intarsia.runtime.kernel import KernelSource

pytest.importorskip("openvino", reason="openvino is an extra")

from intarsia.toolchain.openvino.model import _options

TARGET = "cpu -toolchain=openvino -threads=2"


@pytest.mark.parametrize(
    ("shape", "nodes", "limit"),
    [("n, 4", 1, "260"), ("4, 4", 1, None), ("n, 4", 3, "268"), ("n, 4", 2000, "5000")],
)
def test_the_limit_follows_the_operators(shape: str, nodes: int, limit: str | None) -> None:
    steps = " ".join(f"x{number + 1} = Relu (x{number})" for number in range(nodes))
    model = model_of(f"g (float[{shape}] x0) => (float[{shape}] x{nodes}) {{ {steps} }}")
    options = _options(KernelSource("openvino", TARGET, b"", {}), model)
    assert options.get("CPU_RUNTIME_CACHE_CAPACITY") == limit
    assert options["INFERENCE_NUM_THREADS"] == "2"
