"""NonMaxSuppression in the reference toolchain, with limits in each form that ONNX allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia.frontend.onnx import from_onnx
from intarsia.runtime.kernel import Array
from intarsia.target import Target
from intarsia.toolchain import toolchain

LIMITS = {
    "scalars": ("most, overlap, least", ()),
    "vectors": ("most, overlap, least", (1,)),
    "without the least score": ("most, overlap", ()),
    "without overlap": ("most", (1,)),
    "with the least score only": ('most, "", least', ()),
    "no limit, which selects none": ("", ()),
}


def selected(name: str, limits: str, shape: tuple[int, ...], most: int) -> Array:
    arguments = ", ".join(filter(None, ("boxes, scores", limits)))
    text = (
        "g (float[1,20,4] boxes, float[1,2,20] scores) => (int64[n,3] y) {"
        f" y = NonMaxSuppression <center_point_box = 1> ({arguments}) }}"
    )
    values: dict[str, Any] = {
        "most": np.full(shape, most, np.int64),
        "overlap": np.full(shape, 0.3, np.float32),
        "least": np.full(shape, 0.4, np.float32),
    }
    module = from_onnx(model_of(text, **{key: value for key, value in values.items() if key in limits}))
    generator = np.random.default_rng(0)
    boxes = generator.uniform(0.2, 0.8, (1, 20, 4)).astype(np.float32)
    scores = generator.random((1, 2, 20), np.float32)
    kernel = toolchain(name).compile(module["main"], Target(f"cpu -toolchain={name}"), module)
    (y,) = kernel.run([boxes, scores], [None])
    assert isinstance(y, np.ndarray)
    return y


@pytest.mark.parametrize("most", [3, 0, -1])
@pytest.mark.parametrize("form", LIMITS)
def test_limits_of_each_form_are_read_as_onnxruntime_reads_them(form: str, most: int) -> None:
    pytest.importorskip("onnxruntime", reason="an independent implementation")
    limits, shape = LIMITS[form]
    result = selected("reference", limits, shape, most)
    assert len(result) == 0 if most < 1 or not limits else 0 < len(result) <= 2 * most
    np.testing.assert_array_equal(result, selected("onnxruntime", limits, shape, most))
