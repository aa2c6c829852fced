"""Pad with negative amounts, which onnx's own evaluator refuses."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from tests.onnx_models import model_of

from intarsia import build, from_onnx

CASES = {
    "both ends": ([0, -1, 0, 2], "", "constant"),
    "cut and filled": ([-1, 2, 1, -2], "", "constant"),
    "some axes": ([-2, 1], "last", "constant"),
    "reflected": ([0, 1, 0, 2], "", "reflect"),
    "nothing is left": ([0, -4, 0, 0], "", "constant"),
    "more is cut than there was": ([0, -5, 0, 6], "", "constant"),
}


@pytest.mark.parametrize("name", CASES)
def test_negative_amounts_cut_off(name: str) -> None:
    pads, axes, mode = CASES[name]
    model = model_of(
        f'g (float[3, 4] x) => (float y) {{ y = Pad <mode = "{mode}"> (x, pads, seven{axes and ", last"}) }}',
        opset=18,
        pads=np.array(pads, np.int64),
        seven=np.float32(7),
        last=np.array([-1], np.int64),
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    (right,) = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    (result,) = build(from_onnx(model)).run_flat(x=x)
    assert np.array_equal(np.asarray(result), np.asarray(right))
