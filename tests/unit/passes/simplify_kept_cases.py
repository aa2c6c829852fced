"""Programs that are nearly what a rule of SimplifyExpr looks for, and must stay as they are."""

from __future__ import annotations

import numpy as np
from tests.unit.passes.simplify_cases import BATCH, HALF, IMAGE, INTEGERS, MATRIX, ONE, TRUE, ZERO, Case, f, i

KEPT = (
    Case("neutral_right", "Add(%x, $0)", "", (np.zeros((4, 2, 3), np.float32),)),
    Case("neutral_right", "Mul(%x, $0)", "", (ZERO,)),
    Case("neutral_right", "Sub($0, %x)", "", (ZERO,)),
    Case("neutral_left", "Mul($0, %x)", "", (np.ones((1, 1, 3), np.float32),)),
    Case("neutral_right", "Add(%x, $0)", "", (np.zeros(3, np.float32),), "%x: Tensor[(2, M), float32]"),
    Case("decided_where", "Where($0, %x, %y)", "", (TRUE,), f"{MATRIX}, %y: Tensor[(4, 2, 3), float32]"),
    Case("decided_where", "Where($0, %x, Exp(%x))", "", (np.array([True, False, True]),)),
    Case("merge_clamps", "Clip(Clip(%x, $0, $1), $2)", "", (f(3), f(-3), f(0))),
    Case("merge_clamps", "Clip(Relu(%x), %y)", "", (), f"{MATRIX}, %y: Tensor[(), float32]"),
    Case("cast_of_lossless_cast", "Cast(Cast(%x, to=10), to=1)", ""),
    Case("cast_of_lossless_cast", "Cast(Cast(%x, to=1), to=6)", "", (), "%x: Tensor[(2,), int32]"),
    Case("cast_of_lossless_cast", "Cast(Cast(%x, to=16), to=1)", "", (), HALF),
    Case("same_shape", "Reshape(%x, $0)", "", (i(3, 2),)),
    Case(
        "reshape_to_fixed_shape",
        "Reshape(Flatten(%x), $0)",
        "",
        (i(0, 5, -1),),
        "%x: Tensor[(N, M, 10), float32]",
    ),
    Case(
        "unsqueeze_of_squeeze",
        "Unsqueeze(Squeeze(%x, $0), $1)",
        "",
        (i(0), i(1)),
        "%x: Tensor[(1, A, B), float32]",
    ),
    Case(
        "transpose_of_transpose",
        "Transpose(Transpose(%x, perm=[0, 2, 1, 3]), perm=[0, 1, 3, 2])",
        "",
        (),
        IMAGE,
    ),
    Case("transpose_of_unit_axes", "Transpose(%x, perm=[0, 2, 1])", "", (), "%x: Tensor[(1, A, B), float32]"),
    Case("whole_slice", "Slice(%x, $0, $1, $2, $3)", "", (i(-1), i(-9), i(0), i(-1))),
    Case("whole_slice", "Slice(%x, $0, $1, $2)", "", (i(0), i(7), i(0)), BATCH),
    Case("expand_to_own_shape", "Expand(%x, $0)", "", (i(1, 1, 6),), "%x: Tensor[(N, 4, 1), float32]"),
    Case(
        "operand_expanded",
        "Add(%y, Expand(%x, $0))",
        "",
        (i(4, 2, 3),),
        f"{MATRIX}, %y: Tensor[(3,), float32]",
    ),
    Case(
        "concat_of_all_parts",
        "%s = Split(%x, axis=1, num_outputs=3, outputs=3); Concat(%s.1, %s.0, %s.2, axis=1)",
        "",
    ),
    Case(
        "concat_of_all_parts",
        "%s = Split(%x, axis=1, num_outputs=3, outputs=3); Concat(%s.0, %s.1, %s.2, axis=0)",
        "",
    ),
    Case("nested_concat", "%c = Concat(%x, %x, axis=1); (Concat(%c, %x, axis=1), Exp(%c))", ""),
    Case("nested_concat", "Concat(Concat(%x, %x, axis=1), Concat(%x, %x, axis=1), axis=0)", ""),
    Case(
        "conv_of_pad",
        "Conv(Pad(%x, $0, $2), $1)",
        "",
        (i(0, 0, 0, 1, 0, 0, 2, 0), np.ones((1, 4, 3, 3), np.float32), ONE),
        IMAGE,
    ),
    Case("reduce_unit_axes", "ReduceSum(%x, $0)", "", (i(0),), "%x: Tensor[(2, 1), float32]"),
    Case("pool_of_one", "MaxPool(%x, kernel_shape=[1, 1], strides=[2, 2])", "", (), IMAGE),
    Case("merge_sums", "%s = Add(%x, $0); (Add(%s, $0), Exp(%s))", "", (ONE,)),
    Case("merge_sums", "Add(Sub($0, %x), $0)", "", (ONE,)),
    Case("merge_products", "Mul(Mul(%x, $0), $0)", "", (f(1e-30),)),
    Case("merge_products", "Mul(Mul(%x, $0), $0)", "", (f(1e30),)),
    Case("merge_products", "Div(Mul(%x, $0), $0)", "", (np.array([3], np.int32),), INTEGERS),
    Case(
        "merge_sums",
        "Add(Add(%x, $0), $1)",
        "",
        (np.ones((2, 1), np.float32), f(1, 2, 3)),
    ),
)
"""What must stay."""
