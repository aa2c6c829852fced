"""Valid models by the names of their operators."""

from __future__ import annotations

from typing import Final

import numpy as np
from tests.model_seed import IMAGE, INT8, MOMENT, SCALE, SEQUENCE, ModelSeed, floats, seed
from tests.old_model_seeds import OLD_FORMS

SEEDS: Final[dict[str, ModelSeed]] = {
    "Add": seed("float[2,3] x, float[3] b", "Add (x, b)"),
    "Neg": seed("float[2,3] x", "Neg (x)"),
    "Pow": seed("float[2,3] x, float[1] b", "Pow (x, b)"),
    "Mod": seed("int64[4] x, int64[4] b", "Mod <fmod = 0> (x, b)"),
    "BitShift": seed("uint8[4] x, uint8[4] b", 'BitShift <direction = "LEFT"> (x, b)'),
    "Where": seed("bool[2,3] c, float[2,3] x, float[3] b", "Where (c, x, b)"),
    "Cast": seed("float[2,3] x", "Cast <to = 7> (x)"),
    "Clip": seed("float[2,3] x", "Clip (x, l, h)", l=np.float32(0), h=np.float32(1)),
    "Softmax": seed("float[2,3] x", "Softmax <axis = 1> (x)"),
    "LogSoftmax": seed("float[2,3] x", "LogSoftmax <axis = -1> (x)"),
    "Hardmax": seed("float[2,3] x", "Hardmax <axis = 0> (x)"),
    "Gelu": seed("float[2,3] x", 'Gelu <approximate = "tanh"> (x)'),
    "PRelu": seed("float[2,3] x, float[3] b", "PRelu (x, b)"),
    "MatMul": seed("float[2,3] x, float[3,4] b", "MatMul (x, b)"),
    "Gemm": seed("float[2,3] x", "Gemm <alpha = 0.5, transB = 1> (x, w, c)", w=floats(4, 3), c=floats(4)),
    "Einsum": seed("float[2,3] x, float[3,4] b", 'Einsum <equation = "ij,jk->ik"> (x, b)'),
    "Conv": seed(
        IMAGE,
        "Conv <kernel_shape = [3,3], strides = [1,1], pads = [1,1,1,1], dilations = [1,1], group = 2> "
        "(x, w, b)",
        w=floats(4, 1, 3, 3),
        b=floats(4),
    ),
    "ConvTranspose": seed(
        IMAGE,
        "ConvTranspose <strides = [2,2], pads = [1,1,1,1], output_padding = [1,1], group = 1> (x, w)",
        w=floats(2, 3, 3, 3),
    ),
    "ConvInteger": seed(
        "uint8[1,2,6,6] x",
        "ConvInteger <pads = [1,1,1,1]> (x, w, z)",
        w=np.ones((3, 2, 3, 3), np.uint8),
        z=np.uint8(1),
    ),
    "MaxPool": seed(
        IMAGE, "MaxPool <kernel_shape = [2,2], strides = [2,2], ceil_mode = 1, pads = [0,0,1,1]> (x)"
    ),
    "AveragePool": seed(
        IMAGE, "AveragePool <kernel_shape = [3,3], pads = [1,1,1,1], count_include_pad = 1> (x)"
    ),
    "LpPool": seed(IMAGE, "LpPool <kernel_shape = [2,2], p = 2> (x)"),
    "GlobalAveragePool": seed(IMAGE, "GlobalAveragePool (x)"),
    "MaxUnpool": seed(
        "float[1,1,2,2] x, int64[1,1,2,2] i",
        "MaxUnpool <kernel_shape = [2,2], strides = [2,2]> (x, i)",
        opset=22,
    ),
    "RoiAlign": seed(
        f"{IMAGE}, float[1,4] r, int64[1] i", "RoiAlign <output_height = 2, output_width = 2> (x, r, i)"
    ),
    "Col2Im": seed(
        "float[1,4,25] x", "Col2Im <strides = [1,1]> (x, s, k)", s=np.array([6, 6]), k=np.array([2, 2])
    ),
    "GridSample": seed(f"{IMAGE}, float[1,3,3,2] r", 'GridSample <mode = "linear"> (x, r)'),
    "DepthToSpace": seed("float[1,4,2,2] x", 'DepthToSpace <blocksize = 2, mode = "DCR"> (x)'),
    "SpaceToDepth": seed(IMAGE, "SpaceToDepth <blocksize = 2> (x)"),
    "Resize": seed(
        IMAGE,
        'Resize <mode = "linear", coordinate_transformation_mode = "asymmetric"> (x, , s)',
        s=np.array([1, 1, 2, 2], np.float32),
    ),
    "Resize to sizes": seed(IMAGE, 'Resize <mode = "nearest", axes = [2,3]> (x, , , s)', s=np.array([3, 9])),
    "Pad": seed(
        "float[2,3] x", 'Pad <mode = "constant"> (x, p, v)', p=np.array([1, 0, 0, 2]), v=np.float32(1)
    ),
    "LRN": seed(IMAGE, "LRN <size = 3, alpha = 0.1> (x)"),
    "BatchNormalization": seed(
        IMAGE,
        "BatchNormalization <epsilon = 0.001> (x, s, b, m, v)",
        s=MOMENT,
        b=MOMENT,
        m=MOMENT,
        v=MOMENT,
    ),
    "InstanceNormalization": seed(IMAGE, "InstanceNormalization (x, s, b)", s=floats(2), b=floats(2)),
    "GroupNormalization": seed(
        "float[1,4,3] x", "GroupNormalization <num_groups = 2> (x, s, b)", s=floats(4), b=floats(4)
    ),
    "LayerNormalization": seed(
        "float[2,3] x", "LayerNormalization <axis = -1> (x, s, b)", s=floats(3), b=floats(3)
    ),
    "RMSNormalization": seed("float[2,3] x", "RMSNormalization <axis = -1> (x, s)", s=floats(3)),
    "LpNormalization": seed("float[2,3] x", "LpNormalization <axis = 1, p = 2> (x)"),
    "MeanVarianceNormalization": seed(IMAGE, "MeanVarianceNormalization <axes = [0,2,3]> (x)"),
    "Reshape": seed("float[2,6] x", "Reshape <allowzero = 0> (x, s)", s=np.array([3, -1])),
    "Flatten": seed("float[2,3,4] x", "Flatten <axis = 2> (x)"),
    "Squeeze": seed("float[2,1,4] x", "Squeeze (x, a)", a=np.array([1])),
    "Unsqueeze": seed("float[2,4] x", "Unsqueeze (x, a)", a=np.array([0, 3])),
    "Transpose": seed("float[2,3,4] x", "Transpose <perm = [2,0,1]> (x)"),
    "Expand": seed("float[1,3] x", "Expand (x, s)", s=np.array([2, 1])),
    "Tile": seed("float[2,3] x", "Tile (x, r)", r=np.array([1, 2])),
    "Concat": seed("float[2,3] x, float[2,1] b", "Concat <axis = 1> (x, b)"),
    "Split": seed("float[2,6] x", "Split <axis = 1> (x, s)", s=np.array([6])),
    "Slice": seed(
        "float[5,6] x",
        "Slice (x, b, e, a, t)",
        b=np.array([1, 4]),
        e=np.array([4, 0]),
        a=np.array([0, 1]),
        t=np.array([1, -2]),
    ),
    "Gather": seed("float[4,3] x, int64[2] i", "Gather <axis = 1> (x, i)"),
    "GatherElements": seed("float[4,3] x, int64[2,3] i", "GatherElements <axis = 0> (x, i)"),
    "GatherND": seed("float[2,4,3] x, int64[2,1] i", "GatherND <batch_dims = 1> (x, i)"),
    "ScatterElements": seed(
        "float[4,3] x, int64[2,3] i, float[2,3] u", 'ScatterElements <axis = 0, reduction = "add"> (x, i, u)'
    ),
    "ScatterND": seed("float[4,3] x, int64[2,1] i, float[2,3] u", 'ScatterND <reduction = "none"> (x, i, u)'),
    "OneHot": seed(
        "int64[4] x", "OneHot <axis = -1> (x, d, v)", d=np.array(3), v=np.array([0, 1], np.float32)
    ),
    "TopK": seed("float[2,6] x", "TopK <axis = 1, largest = 0> (x, k)", others="places", k=np.array([2])),
    "ArgMax": seed("float[2,6] x", "ArgMax <axis = 1, keepdims = 0> (x)"),
    "ReduceSum": seed("float[2,3,4] x", "ReduceSum <keepdims = 0> (x, a)", a=np.array([0, -1])),
    "CumSum": seed("float[2,3] x", "CumSum <exclusive = 1> (x, a)", a=np.array(1)),
    "Trilu": seed("float[3,3] x", "Trilu <upper = 0> (x, k)", k=np.array(1)),
    "EyeLike": seed("float[3,3] x", "EyeLike <k = 1, dtype = 1> (x)"),
    "Range": seed("float[1] x", "Range (a, b, c)", a=np.array(0), b=np.array(6), c=np.array(2)),
    "ConstantOfShape": seed("float[1] x", "ConstantOfShape (s)", s=np.array([2, 3])),
    "ReverseSequence": seed(
        "float[4,3] x, int64[3] l", "ReverseSequence <time_axis = 0, batch_axis = 1> (x, l)"
    ),
    "CenterCropPad": seed("float[4,3] x", "CenterCropPad <axes = [0,1]> (x, s)", s=np.array([2, 5])),
    "NonMaxSuppression": seed(
        "float[1,6,4] x, float[1,1,6] s",
        "NonMaxSuppression <center_point_box = 1> (x, s, m)",
        m=np.array([3]),
    ),
    "NonZero": seed("float[2,3] x", "NonZero (x)"),
    "QuantizeLinear": seed(
        "float[2,4] x",
        "QuantizeLinear <axis = 1> (x, s, z)",
        s=np.ones(4, np.float32),
        z=np.zeros(4, np.int8),
    ),
    "DequantizeLinear": seed(
        "int8[2,4] x",
        "DequantizeLinear <axis = 1, block_size = 2> (x, s, z)",
        s=np.ones((2, 2), np.float32),
        z=np.zeros((2, 2), np.int8),
    ),
    "DynamicQuantizeLinear": seed("float[2,4] x", "DynamicQuantizeLinear (x)", others="scale zero"),
    "QLinearMatMul": seed(
        "int8[2,3] x", "QLinearMatMul (x, s, z, w, s, z, s, z)", s=SCALE, z=INT8, w=np.ones((3, 4), np.int8)
    ),
    "QLinearConv": seed(
        "int8[1,2,6,6] x",
        "QLinearConv <pads = [1,1,1,1], group = 1> (x, s, z, w, s, z, s, z)",
        s=SCALE,
        z=INT8,
        w=np.ones((3, 2, 3, 3), np.int8),
    ),
    "MatMulInteger": seed("int8[2,3] x, int8[3,4] b", "MatMulInteger (x, b, z)", z=INT8),
    "LSTM": seed(
        SEQUENCE,
        'LSTM <hidden_size = 4, direction = "bidirectional", clip = 1.0> (x, w, r, b)',
        w=floats(2, 16, 3),
        r=floats(2, 16, 4),
        b=floats(2, 32),
    ),
    "LSTM with activations": seed(
        f"{SEQUENCE}, int32[2] l",
        'LSTM <hidden_size = 4, activations = ["Sigmoid", "Affine", "Tanh"], activation_alpha = [0.5], '
        "activation_beta = [0.1], input_forget = 1> (x, w, r, , l)",
        w=floats(1, 16, 3),
        r=floats(1, 16, 4),
    ),
    "GRU": seed(
        SEQUENCE,
        'GRU <hidden_size = 4, linear_before_reset = 1, direction = "reverse"> (x, w, r)',
        w=floats(1, 12, 3),
        r=floats(1, 12, 4),
    ),
    "RNN": seed(
        SEQUENCE,
        'RNN <hidden_size = 4, activations = ["Relu"], layout = 0> (x, w, r)',
        w=floats(1, 4, 3),
        r=floats(1, 4, 4),
    ),
    "Attention": seed(
        "float[1,3,8] q, float[1,5,8] k, float[1,5,8] v",
        "Attention <q_num_heads = 2, kv_num_heads = 2, is_causal = 1> (q, k, v)",
    ),
    "RotaryEmbedding": seed(
        "float[1,2,3,4] x, int64[1,3] i", "RotaryEmbedding <interleaved = 0> (x, c, c, i)", c=floats(9, 2)
    ),
    "DFT": seed("float[1,8,1] x", "DFT <onesided = 1> (x, , a)", a=np.array(1)),
    "STFT": seed("float[1,16,1] x", "STFT <onesided = 1> (x, s, , l)", s=np.array(4), l=np.array(8)),
    "HannWindow": seed("float[1] x", "HannWindow <periodic = 0> (s)", s=np.array(6)),
    "Dropout": seed("float[2,3] x", "Dropout (x, r)", r=np.float32(0.5)),
    "Compress": seed("float[4,3] x, bool[4] c", "Compress <axis = 0> (x, c)"),
    "Shape": seed("float[4,3] x", "Shape <start = 0, end = 1> (x)"),
    "SoftmaxCrossEntropyLoss": seed(
        "float[4,3] x, int64[4] l",
        'SoftmaxCrossEntropyLoss <reduction = "mean", ignore_index = 1> (x, l)',
        opset=13,
    ),
    "NegativeLogLikelihoodLoss": seed(
        "float[4,3] x, int64[4] l", 'NegativeLogLikelihoodLoss <reduction = "sum"> (x, l, w)', w=floats(3)
    ),
    "RandomNormal": seed("float[1] x", "RandomNormal <shape = [2,3], dtype = 1, seed = 1.0> ()"),
    "Scaler": seed(
        "float[2,3] x", "ai.onnx.ml.Scaler <offset = [1.0], scale = [2.0, 1.0, 1.0]> (x)", domain="ai.onnx.ml"
    ),
    "LinearClassifier": seed(
        "float[2,3] x",
        "ai.onnx.ml.LinearClassifier <coefficients = [1.0,2.0,3.0,1.0,2.0,3.0], intercepts = [1.0,0.0], "
        'classlabels_ints = [0,1], post_transform = "NONE"> (x)',
        domain="ai.onnx.ml",
        others="scores",
    ),
    "TreeEnsembleRegressor": seed(
        "float[2,3] x",
        "ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0,0,0], nodes_nodeids = [0,1,2], "
        "nodes_featureids = [1,0,0], nodes_values = [0.5,0.0,0.0], nodes_truenodeids = [1,0,0], "
        'nodes_falsenodeids = [2,0,0], nodes_modes = ["BRANCH_LEQ","LEAF","LEAF"], target_treeids = [0,0], '
        "target_nodeids = [1,2], target_ids = [0,0], target_weights = [1.0,2.0]> (x)",
        domain="ai.onnx.ml",
    ),
    **{f"{name} of opset {form.opset}": form for name, form in OLD_FORMS},
    "SkipLayerNormalization": seed(
        "float[1,2,4] x, float[1,2,4] s",
        "com.microsoft.SkipLayerNormalization <epsilon = 0.1> (x, s, g)",
        domain="com.microsoft",
        g=floats(4),
    ),
    "QAttention": seed(
        "float[1,3,8] x",
        "com.microsoft.Attention <num_heads = 2> (x, w, b)",
        domain="com.microsoft",
        w=floats(8, 24),
        b=floats(24),
    ),
    "MatMulNBits": seed(
        "float[1,2,32] x",
        "com.microsoft.MatMulNBits <K = 32, N = 4, bits = 4, block_size = 16> (x, w, s)",
        domain="com.microsoft",
        w=np.ones((4, 2, 8), np.uint8),
        s=np.ones(8, np.float32),
    ),
}
"""Valid models, by the names of their operators."""
