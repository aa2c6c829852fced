"""Models of forms of operators that the import converts."""

from __future__ import annotations

from typing import Final

import numpy as np
from tests.model_seed import IMAGE, MOMENT, SCALES, SEQUENCE, floats, seed

OLD_FORMS: Final = (
    ("Slice", seed("float[5,6] x", "Slice <axes = [0,1], starts = [1,0], ends = [4,-1]> (x)", opset=9)),
    ("Pad", seed("float[2,3] x", 'Pad <mode = "constant", pads = [1,0,0,2], value = 1.0> (x)', opset=10)),
    ("Clip", seed("float[2,3] x", "Clip <min = 0.0, max = 1.0> (x)", opset=6)),
    ("Split", seed("float[2,6] x", "Split <axis = 1, split = [6]> (x)", opset=11)),
    ("Squeeze", seed("float[2,1,4] x", "Squeeze <axes = [1]> (x)", opset=11)),
    ("Unsqueeze", seed("float[2,4] x", "Unsqueeze <axes = [0,3]> (x)", opset=11)),
    ("Softmax", seed("float[2,3,4] x", "Softmax <axis = 1> (x)", opset=11)),
    (
        "BatchNormalization",
        seed(
            IMAGE,
            "BatchNormalization <spatial = 1> (x, s, b, m, v)",
            opset=7,
            s=MOMENT,
            b=MOMENT,
            m=MOMENT,
            v=MOMENT,
        ),
    ),
    ("Dropout", seed("float[2,3] x", "Dropout <ratio = 0.5> (x)", opset=10)),
    ("TopK", seed("float[2,6] x", "TopK <axis = 1, k = 2> (x)", opset=9, others="places")),
    ("Add", seed("float[2,3] x, float[3] b", "Add <broadcast = 1, axis = 1> (x, b)", opset=6)),
    ("Gemm", seed("float[2,3] x, float[3,4] b, float[4] c", "Gemm <broadcast = 1> (x, b, c)", opset=6)),
    ("ReduceMax", seed("float[2,3,4] x", "ReduceMax <axes = [1,2]> (x)", opset=11)),
    ("ReduceSum", seed("float[2,3,4] x", "ReduceSum <axes = [1,2], keepdims = 0> (x)", opset=12)),
    ("Upsample", seed(IMAGE, 'Upsample <mode = "nearest"> (x, s)', opset=9, s=SCALES)),
    ("Upsample", seed(IMAGE, 'Upsample <mode = "nearest", scales = [1.0,1.0,2.0,2.0]> (x)', opset=7)),
    ("Resize", seed(IMAGE, 'Resize <mode = "nearest"> (x, s)', opset=10, s=SCALES)),
    ("Scatter", seed("float[4,3] x, int64[2,3] i, float[2,3] u", "Scatter <axis = 0> (x, i, u)", opset=10)),
    ("Flatten", seed("float[2,3,4] x", "Flatten <axis = 2> (x)", opset=8)),
    ("DFT", seed("float[1,8,1] x", "DFT <axis = 1, onesided = 1> (x)", opset=17)),
    ("GridSample", seed(f"{IMAGE}, float[1,3,3,2] r", 'GridSample <mode = "bilinear"> (x, r)', opset=16)),
    ("Reshape", seed("float[2,6] x", "Reshape <shape = [3,4]> (x)", opset=4)),
    (
        "GroupNormalization",
        seed(
            "float[1,4,3] x",
            "GroupNormalization <num_groups = 2> (x, s, b)",
            opset=18,
            s=floats(2),
            b=floats(2),
        ),
    ),
    (
        "LSTM",
        seed(SEQUENCE, "LSTM <hidden_size = 4> (x, w, r)", opset=7, w=floats(1, 16, 3), r=floats(1, 16, 4)),
    ),
    ("MaxPool", seed(IMAGE, "MaxPool <kernel_shape = [2,2]> (x)", opset=1)),
    ("Sum", seed("float[2,3] x, float[2,3] b", "Sum (x, b)", opset=6)),
    (
        "LabelEncoder",
        seed(
            "int64[4] x",
            'ai.onnx.ml.LabelEncoder <classes_strings = ["a","b"], default_string = "c"> (x)',
            opset=9,
            domain="ai.onnx.ml",
        ),
    ),
    (
        "LabelEncoder",
        seed(
            "string[4] x",
            'ai.onnx.ml.LabelEncoder <classes_strings = ["a","b"], default_int64 = 2> (x)',
            opset=8,
            domain="ai.onnx.ml",
        ),
    ),
    ("ArgMax", seed("float[2,6] x", "ArgMax <axis = 1, keepdims = 0> (x)", opset=11)),
    (
        "NonMaxSuppression",
        seed("float[1,6,4] x, float[1,1,6] s", "NonMaxSuppression (x, s, m)", opset=10, m=np.array([3])),
    ),
)
"""Forms that the import converts."""
