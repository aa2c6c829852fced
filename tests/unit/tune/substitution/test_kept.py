"""Programs that look like what a rule is for, and must stay as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.each_case import each_case
from tests.substitution_examples import places

from intarsia.ir.parser import parse_module
from intarsia.op import infer_types
from intarsia.tune.substitution import RULES

MATRICES = "%a: Tensor[(N, 4), float32], %b: Tensor[(N, 4), float32], %c: Tensor[(N, 1), float32]"
IMAGES = "%a: Tensor[(N, 2, 4, 4), float32], %b: Tensor[(N, 2, 4, 4), float32]"
VOLUMES = "%a: Tensor[(2, 3, 4), float32], %b: Tensor[(4, 2), float32]"
UNKNOWN = "%a: Tensor[?, float32], %b: Tensor[?, float32], %c: Tensor[?, float32]"
INTEGERS = "%a: Tensor[(N, 4), int32], %b: Tensor[(N, 4), int32], %c: Tensor[(N, 4), int32]"


def f(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def i(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


@dataclass(frozen=True)
class Kept:
    """A body that a rule does not fit; `$0`, `$1` are the constants."""

    rule: str
    body: str
    params: str = MATRICES
    constants: tuple[np.ndarray[Any, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.body}"


POINT, KERNEL = np.ones((2, 2, 1, 1), np.float32), np.ones((2, 2, 3, 3), np.float32)

KEPT = (
    # a divisor that is 0, or whose inverse has no digits
    Kept("divide_by_multiplying", "Div(%a, $0)", MATRICES, (f(1, 0, 1, 1),)),
    Kept("divide_by_multiplying", "Div(%a, $0)", MATRICES, (f(1e30),)),
    Kept("divide_by_multiplying", "Div(%a, $0)", INTEGERS, (np.array(2, np.int32),)),
    Kept("factor_common_divisor", "Add(Div(%a, %c), Div(%b, %c))", INTEGERS),
    # numbers only, and one divisor a row
    Kept(
        "scale_left_operand_later",
        "MatMul(Mul(%a, $0), $1)",
        MATRICES,
        (f(1, 2, 3, 4), np.ones((4, 2), np.float32)),
    ),
    Kept("divide_rows_later", "MatMul(Div(%a, %b), $0)", MATRICES, (np.ones((4, 2), np.float32),)),
    # sums whose parts are not of one shape
    Kept("distribute_over_left_sum", "MatMul(Add(%a, %c), $0)", MATRICES, (np.ones((4, 2), np.float32),)),
    Kept(
        "add_right_operands",
        "Add(MatMul(%a, %b), MatMul(%a, $0))",
        VOLUMES,
        (np.ones((2, 4, 2), np.float32),),
    ),
    # other axes than those of rows and columns
    Kept("transpose_operands", "Transpose(MatMul(%a, %b), perm=[1, 0, 2])", VOLUMES),
    Kept("merge_products_beside", "Concat(MatMul(%a, %b), MatMul(%a, %b), axis=0)", VOLUMES),
    Kept("merge_products_below", "Concat(MatMul(%a, %b), MatMul(%a, %b), axis=2)", VOLUMES),
    Kept("part_products_beside", "MatMul(%a, Concat(%b, %b, axis=1))", UNKNOWN),
    # what a Gemm cannot add or multiply
    Kept("product_as_gemm", "Add(MatMul(%a, %b), $0)", VOLUMES, (f(1, 2),)),
    # convolutions of other geometry, in groups, with biases that pads would show
    Kept(
        "merge_convolutions",
        "Concat(Conv(%a, $0), Conv(%a, $1, pads=[1, 1, 1, 1]), axis=1)",
        IMAGES,
        (POINT, KERNEL),
    ),
    Kept("merge_convolutions", "Concat(Conv(%a, $0), Conv(%a, $0), axis=2)", IMAGES, (POINT,)),
    Kept("merge_parallel_convolutions", "(Conv(%a, $0), Conv(%b, $0))", IMAGES, (POINT,)),
    Kept(
        "merge_parallel_convolutions",
        "(Conv(%a, $0, group=2), Conv(%a, $0, group=2))",
        IMAGES,
        (np.ones((2, 1, 1, 1), np.float32),),
    ),
    Kept("pointwise_behind", "Conv(Conv(%a, $0), $0, strides=[2, 2])", IMAGES, (POINT,)),
    Kept(
        "pointwise_before", "Conv(Conv(%a, $0, $1), $2, pads=[1, 1, 1, 1])", IMAGES, (POINT, f(1, 2), KERNEL)
    ),
    Kept("shrink_kernel", "Conv(%a, $0, pads=[1, 1, 1, 1])", IMAGES, (KERNEL,)),
    Kept("enlarge_kernel", 'Conv(%a, $0, auto_pad="SAME_UPPER")', IMAGES, (POINT,)),
    Kept("identity_into_kernel", "Add(Conv(%a, $0, pads=[1, 1, 1, 1]), %b)", IMAGES, (KERNEL,)),
    Kept("identity_into_kernel", "Add(Conv(%a, $0, pads=[2, 2, 0, 0]), %a)", IMAGES, (KERNEL,)),
    Kept("scale_into_kernel", "Mul(Conv(%a, $0), $1)", IMAGES, (POINT, f(1, 2, 3, 4))),
    Kept("addend_as_bias", "Add(Conv(%a, $0), $1)", IMAGES, (POINT, f(1, 2, 3, 4))),
    Kept(
        "average_pooling_as_convolution",
        "AveragePool(%a, kernel_shape=[2, 2], pads=[1, 1, 0, 0])",
        IMAGES,
    ),
    Kept(
        "pointwise_behind_average",
        "AveragePool(Conv(%a, $0, $1), kernel_shape=[2, 2], pads=[1, 1, 0, 0])",
        IMAGES,
        (POINT, f(1, 2)),
    ),
    Kept(
        "merge_max_pooling",
        "MaxPool(MaxPool(%a, kernel_shape=[2, 2], strides=[2, 2]), kernel_shape=[2, 2])",
        IMAGES,
    ),
    # parts that are cut elsewhere, pairs that are stretched
    Kept("field_of_concat", "Split(Concat(%a, %b, axis=1), $0, axis=1, outputs=2).0", MATRICES, (i(3, 5),)),
    Kept("field_of_concat", "Split(Concat(%a, %b, axis=0), $0, axis=1, outputs=2).0", MATRICES, (i(2, 2),)),
    Kept("pairs_before_concat", "Add(Concat(%a, %c, axis=1), Concat(%c, %a, axis=1))"),
    Kept("pairs_behind_concat", "Concat(Add(%a, %c), Add(%b, %c), axis=1)"),
    Kept("pairs_behind_reshape", "Reshape(Add(%a, %c), $0)", MATRICES, (i(-1),)),
    Kept("elementwise_behind_concat", "Concat(Relu(%a), Neg(%b), axis=1)"),
    Kept("nest_concat_right", "Concat(Concat(%a, %b, axis=1), Concat(%a, %b, axis=1), axis=0)"),
    # shifts along the axis, reductions that drop axes, values that pads hide
    Kept("shift_before_softmax", "Softmax(Add(%a, %b), axis=1)"),
    Kept("shift_before_softmax", "Softmax(Add(%a, %c), axis=0)"),
    Kept("shift_before_softmax", "Softmax(Add(%a, %c), axis=1)", MATRICES.replace("N", "?")),
    Kept("softmax_of_parts", "Div(Exp(%a), ReduceSum(Exp(%b), $0))", MATRICES, (i(1),)),
    Kept("softmax_of_parts", "Softmax(%a, axis=1)"),
    Kept("merge_sums_along_axes", "ReduceSum(ReduceSum(%a, $0, keepdims=0), $1)", VOLUMES, (i(0), i(1))),
    Kept(
        "reduce_before_transpose",
        "ReduceMax(Transpose(%a, perm=[1, 0, 2]), $0, keepdims=0)",
        VOLUMES,
        (i(0),),
    ),
    Kept("sum_as_product", "ReduceSum(%a, $0)", MATRICES, (i(0),)),
    Kept("mean_as_scaled_sum", "ReduceMean(%a, $0)", MATRICES, (i(0),)),
    Kept("scale_behind_activation", "Relu(Mul(%a, $0))", MATRICES, (f(1, -1, 1, 1),)),
    Kept("elementwise_before_pad", "Exp(Pad(%a, $0))", MATRICES, (i(0, 1, 0, 1),)),
    Kept("elementwise_before_pad", "Tanh(Pad(%a, $0, $1))", MATRICES, (i(0, 1, 0, 1), f(3))),
    Kept("merge_pads", "Pad(Pad(%a, $0), $0)", MATRICES, (i(0, -1, 0, 1),)),
    Kept("pads_into_convolution", "Conv(Pad(%a, $0), $1)", IMAGES, (i(0, 0, 1, 1, 1, 0, 0, 0), POINT)),
    Kept("transpose_as_reshape", "Transpose(%b)", VOLUMES),
    Kept("merge_reshapes", "Reshape(Reshape(%a, $0), $1)", MATRICES, (i(0, 2, 2), i(0, 4))),
)


@each_case("case", KEPT)
def test_a_rule_stays_away(case: Kept) -> None:
    body = case.body
    for index in range(len(case.constants)):
        body = body.replace(f"${index}", f"meta[Constant][{index}]")
    mod = infer_types(parse_module(f"def @main({case.params}) {{ {body} }}", case.constants))
    assert places(RULES[case.rule], mod) == []
