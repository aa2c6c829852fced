"""Arguments whose shapes do not fit each other are refused, as kernels would leave their tensors."""

from __future__ import annotations

import pytest
from tests.each_case import each_case
from tests.onnx_models import model_of

from intarsia.frontend.onnx import from_onnx
from intarsia.support.errors import InvalidModelError

MISFITS = {
    "GatherElements": [
        "float[4,3] x, int64[2,4] i) => (y) { y = GatherElements (x, i)",
        "float[4,3] x, int64[2] i) => (y) { y = GatherElements (x, i)",
        "float[4,3] x, int64[5,3] i) => (y) { y = GatherElements <axis = -1> (x, i)",
    ],
    "ScatterElements": [
        "float[4,3] x, int64[1,1] i, float[2,3] u) => (y) { y = ScatterElements (x, i, u)",
        "float[4,3] x, int64[2,4] i, float[2,4] u) => (y) { y = ScatterElements (x, i, u)",
    ],
    "ScatterND": [
        "float[4,3] x, int64[1,1] i, float[2,3] u) => (y) { y = ScatterND (x, i, u)",
        "float[4,3] x, int64[2,1] i, float[2,9] u) => (y) { y = ScatterND (x, i, u)",
        "float[4,3] x, int64[2,3] i, float[2] u) => (y) { y = ScatterND (x, i, u)",
    ],
    "GatherND": ["float[2,4,3] x, int64[5,1] i) => (y) { y = GatherND <batch_dims = 1> (x, i)"],
    "RotaryEmbedding": [
        "float[1,2,3,4] x, float[9,1] c, int64[1,3] i) => (y) { y = RotaryEmbedding (x, c, c, i)",
        "float[1,2,3,4] x, float[9,2] c, int64[1,1] i) => (y) { y = RotaryEmbedding (x, c, c, i)",
        "float[1,2,3,4] x, float[1,2,2] c) => (y) { y = RotaryEmbedding (x, c, c)",
    ],
    "ReverseSequence": [
        "float[4,3] x, int64[2] l) => (y) { y = ReverseSequence (x, l)",
        "float[4,3] x, int64[3] l) => (y) { y = ReverseSequence <time_axis = 1, batch_axis = 0> (x, l)",
    ],
    "InstanceNormalization": ["float[1,2,6] x, float[1] s) => (y) { y = InstanceNormalization (x, s, s)"],
    "GroupNormalization": [
        "float[1,4,6] x, float[2] s) => (y) { y = GroupNormalization <num_groups = 2> (x, s, s)"
    ],
    "LayerNormalization": ["float[1,4,6] x, float[5] s) => (y) { y = LayerNormalization (x, s)"],
    "RMSNormalization": ["float[1,4,6] x, float[4,1,1] s) => (y) { y = RMSNormalization (x, s)"],
    "Conv": [
        "float[1,2,6,6] x, float[4,5,3,3] w) => (y) { y = Conv <group = 2> (x, w)",
        "float[1,2,6,6] x, float[3,1,3,3] w) => (y) { y = Conv <group = 2> (x, w)",
        "float[1,2,6,6] x, float[4,2,3,3] w, float[1] b) => (y) { y = Conv (x, w, b)",
    ],
    "ConvTranspose": [
        "float[1,2,6,6] x, float[5,1,3,3] w) => (y) { y = ConvTranspose (x, w)",
        "float[1,2,6,6] x, float[2,1,3,3] w, float[3] b) => (y) { y = ConvTranspose (x, w, b)",
    ],
    "DepthToSpace": ["float[1,5,2,2] x) => (y) { y = DepthToSpace <blocksize = 2> (x)"],
    "QLinearConv": [
        "uint8[1,1,3,3] x, float t, uint8 z, uint8[3,1,1,1] w, float[2] s, uint8[2] p) => (y) "
        "{ y = QLinearConv (x, t, z, w, s, p, t, z)"
    ],
    "QuantizeLinear": ["float[2,8] x, float[3] s) => (y) { y = QuantizeLinear (x, s)"],
    "DequantizeLinear": ["int8[2,8] x, float[2,3] s) => (y) { y = DequantizeLinear <block_size = 2> (x, s)"],
    "MatMulInteger": [
        "int8[2,3] x, int8[3,4] w, int8[9] z) => (y) { y = MatMulInteger (x, w, z)",
        "int8[2,3] x, int8[3,4] w, int8[2] z) => (y) { y = MatMulInteger (x, w, z, z)",
    ],
    "Einsum": ['float[2,3] x, float[5,4] w) => (y) { y = Einsum <equation = "ij,jk->ik"> (x, w)'],
    "Attention": [
        "float[1,2,3,4] q, float[1,2,5,3] k, float[1,2,5,4] v) => (y) { y = Attention (q, k, v)",
        "float[1,2,3,4] q, float[1,2,5,4] k, float[1,2,4,4] v) => (y) { y = Attention (q, k, v)",
        "float[1,2,3,4] q, float[1,2,5,4] k, float[2,5] m) => (y) { y = Attention (q, k, k, m)",
    ],
    "NonMaxSuppression": [
        "float[1,6,4] x, float[1,1,9] s, int64[1] m) => (y) { y = NonMaxSuppression (x, s, m)",
        "float[1,6,2] x, float[1,1,6] s, int64[1] m) => (y) { y = NonMaxSuppression (x, s, m)",
        "float[4,6,4] x, float[9,1,6] s, int64[1] m) => (y) { y = NonMaxSuppression (x, s, m)",
    ],
}
CASES = [(name, text) for name, texts in MISFITS.items() for text in texts]


@each_case(("name", "text"), CASES)
def test_arguments_that_do_not_fit_are_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidModelError) as caught:
        from_onnx(model_of(f"g ({text} }}", opset=24, ir_version=10))
    assert caught.value.problem.startswith(f"operator '{name}' cannot be applied to (")
    assert f"at node 'y' ({name})" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "float[4,3] x, int64[2,3] i) => (y) { y = GatherElements (x, i)",
        "float[4,3] x, int64[9,2] i) => (y) { y = GatherElements <axis = 0> (x, i)",
        "float[4,3] x, int64[2,1] i, float[2,3] u) => (y) { y = ScatterND (x, i, u)",
        "float[N,3] x, int64[2,9] i) => (y) { y = GatherElements (x, i)",
        "float[1,4,6] x, float[4,1] s) => (y) { y = LayerNormalization (x, s)",
        "float[2,8] x, float[1] s) => (y) { y = QuantizeLinear (x, s)",
        "int8[2,7] x, float[2,4] s) => (y) { y = DequantizeLinear <block_size = 2> (x, s)",
        'float[2,1] x, float[5,4] w) => (y) { y = Einsum <equation = "ij,jk->ik"> (x, w)',
        "float[1,2,3,4] q, float[1,2,5,4] k, float[3,1] m) => (y) { y = Attention (q, k, k, m)",
    ],
)
def test_arguments_that_fit_or_are_not_known_are_taken(text: str) -> None:
    from_onnx(model_of(f"g ({text} }}", opset=24, ir_version=10))
