"""Rows that a Loop stacks, in the reference toolchain."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia.frontend.onnx import from_onnx
from intarsia.runtime.kernel import Value
from intarsia.target import Target
from intarsia.toolchain import toolchain


@pytest.mark.parametrize("trips", [0, 1, 3])
@pytest.mark.parametrize("dims", ["", "[2]", "[1,2]"])
def test_rows(dims: str, trips: int) -> None:
    shape = {"": (), "[2]": (2,), "[1,2]": (1, 2)}[dims]
    module = from_onnx(
        model_of(
            f"g (int64 n, float{dims} x) => (float{dims} y, float rows) {{ y, rows = Loop (n, , x) <body = b "
            f"(int64 i, bool go, float{dims} s) => (bool again, float{dims} t, float{dims} row) {{"
            " again = Identity(go)  t = Add(s, x)  row = Neg(t) }> }"
        )
    )
    found = {}
    for name in ("reference", "onnxruntime"):
        kernel = toolchain(name).compile(module["main"], Target(f"cpu -toolchain={name}"), module)
        inputs: list[Value] = [np.array(trips), np.ones(shape, np.float32)]
        found[name] = kernel.run(inputs, [None, None])
    rows = -np.ones((trips, *shape)) * np.arange(2, trips + 2).reshape(-1, *(1,) * len(shape))
    for last, stacked in found.values():
        np.testing.assert_array_equal(last, np.full(shape, trips + 1))
        np.testing.assert_array_equal(stacked, rows)
        assert isinstance(stacked, np.ndarray)
        assert stacked.shape == rows.shape
