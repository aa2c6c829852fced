"""What engines compute less precisely than the program says, unless an option says otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.onnx_models import model_of

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.passes import partition_whole
from intarsia.support.errors import CompileError
from intarsia.target import Target


def relative_difference(toolchain: str, text: str, **inputs: npt.NDArray[Any]) -> float:
    """How far a toolchain is from the reference, in the norm."""
    results = []
    for name in (toolchain, "reference"):
        with build(partition_whole(from_onnx(model_of(text)), Target.for_toolchain(name))) as executable:
            results.append(np.asarray(executable(**inputs), np.float64))
    return float(np.linalg.norm(results[0] - results[1]) / np.linalg.norm(results[1]))


@pytest.mark.parametrize("toolchain", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("zero", [0, 128])
def test_products_of_unsigned_and_signed_bytes_do_not_saturate(zero: int, toolchain: str) -> None:
    text = f"""
    g (float[4,64] x) => (float[4,8] y)
      <float s = {{0.01}}, uint8 z = {{{zero}}}, int8 zw = {{0}}, float t = {{2.0}}, uint8 zt = {{128}},
       int8[64,8] w = {{{",".join(["127", "-127"] * 256)}}}>
    {{
      q = QuantizeLinear (x, s, z)
      d = DequantizeLinear (q, s, z)
      dw = DequantizeLinear (w, s, zw)
      p = MatMul (d, dw)
      r = QuantizeLinear (p, t, zt)
      y = DequantizeLinear (r, t, zt)
    }}"""
    x = np.random.default_rng(0).uniform(1.2, 2.5, (4, 64)).astype(np.float32)
    x[:, 1::2] = 0
    assert relative_difference(toolchain, text, x=x) < 1e-6


@pytest.mark.parametrize("type_", ["int16", "uint16"])
def test_openvino_refuses_quantisation_to_16_bits_which_it_leaves_out(type_: str) -> None:
    text = f"""
    g (float[8] x) => (float[8] y) <float s = {{0.001}}, {type_} z = {{0}}>
    {{ a = Relu (x) q = QuantizeLinear (a, s, z) d = DequantizeLinear (q, s, z) y = Relu (d) }}"""
    module = from_onnx(model_of(text))
    with pytest.raises(CompileError, match="leaves out QuantizeLinear to 16 bits"):
        build(partition_whole(module, Target.for_toolchain("openvino")))
    assert relative_difference("onnxruntime", text, x=np.full(8, 100, np.float32)) == 0
