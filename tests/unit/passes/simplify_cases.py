"""A program for each rule of SimplifyExpr, and what the rule makes of it.

Bodies are over `%x: Tensor[(2, 3), float32]` unless parameters are given; `$0`, `$1` are the constants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.ir import IRModule
from intarsia.ir.parser import parse_module
from intarsia.op import infer_types

MATRIX = "%x: Tensor[(2, 3), float32]"
IMAGE = "%x: Tensor[(2, 4, 5, 6), float32]"
BATCH = "%x: Tensor[(N, 4, 6), float32]"
INTEGERS = "%x: Tensor[(2, 3), int32]"
FLAGS = "%x: Tensor[(2, 3), bool]"
HALF = "%x: Tensor[(2, 3), float16]"
WINDOW = np.arange(36, dtype=np.float32).reshape(1, 4, 3, 3)


@dataclass(frozen=True)
class Case:
    """A program before and after SimplifyExpr; `rule` is the rule that is shown.

    Attributes:
        rule: Name of its function.
        before: Body before.
        after: Body after; "" if it must stay.
        constants: Values of $0, $1, ...
        params: Parameters of both.
    """

    rule: str
    before: str
    after: str
    constants: tuple[npt.NDArray[Any], ...] = field(default=())
    params: str = MATRIX

    def program(self, body: str) -> IRModule:
        """One of the programs, typed."""
        for index in range(len(self.constants)):
            body = body.replace(f"${index}", f"meta[Constant][{index}]")
        return infer_types(parse_module(f"def @main({self.params}) {{ {body} }}", self.constants))

    def __str__(self) -> str:
        return f"{self.rule}: {self.before}"


def f(*values: Any) -> npt.NDArray[Any]:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def i(*values: int) -> npt.NDArray[Any]:
    return np.array(values, np.int64)


TRUE, ZERO, ONE = np.array(True), f(0), f(1)

CASES = (
    # arithmetic
    Case("neutral_right", "Add(%x, $0)", "%x", (f(0, 0, 0),)),
    Case("neutral_right", "Sub(%x, $0)", "%x", (ZERO,)),
    Case("neutral_right", "Mul(%x, $0)", "%x", (ONE,)),
    Case("neutral_right", "Div(%x, $0)", "%x", (ONE,)),
    Case("neutral_right", "Pow(%x, $0)", "%x", (i(1),)),
    Case("neutral_right", "And(%x, $0)", "%x", (TRUE,), FLAGS),
    Case(
        "neutral_right",
        'BitShift(%x, $0, direction="LEFT")',
        "%x",
        (np.array([0], np.uint32),),
        "%x: Tensor[(2,), uint32]",
    ),
    Case("neutral_left", "Add($0, %x)", "%x", (ZERO,)),
    Case("neutral_left", "Mul($0, %x)", "%x", (f([[1.0]]),)),
    Case("neutral_left", "Xor($0, %x)", "%x", (~TRUE,), FLAGS),
    Case("involution", "Neg(Neg(%x))", "%x"),
    Case("involution", "Not(Not(%x))", "%x", (), FLAGS),
    Case("idempotent", "Relu(Relu(Relu(%x)))", "Relu(%x)"),
    Case("idempotent", "Floor(Floor(%x))", "Floor(%x)"),
    Case("abs_of_neg", "Abs(Neg(%x))", "Abs(%x)"),
    Case("add_of_neg", "Add(%x, Neg(Exp(%x)))", "Sub(%x, Exp(%x))"),
    Case("add_of_neg", "Add(Neg(%x), Exp(%x))", "Sub(Exp(%x), %x)"),
    Case("add_of_neg", "Sub(%x, Neg(%x))", "Add(%x, %x)"),
    Case("variadic_of_one", "Max(%x)", "%x"),
    Case("variadic_of_one", "Mean(%x)", "%x"),
    Case("same_operands", "Max(%x, %x)", "%x"),
    Case("same_operands", "And(%x, %x)", "%x", (), FLAGS),
    Case("decided_where", "Where($0, %x, Exp(%x))", "%x", (TRUE,)),
    Case("decided_where", "Where($0, %x, Exp(%x))", "Exp(%x)", (np.array([False, False, False]),)),
    Case("where_of_same", "Where(%c, %x, %x)", "%x", (), f"{MATRIX}, %c: Tensor[(3,), bool]"),
    # clamping
    Case("clip_without_bounds", "Clip(%x)", "%x"),
    Case("merge_clamps", "Clip(Clip(%x, $0, $1), $2, $3)", "Clip(%x, $2, $1)", (f(0), f(6), f(1), f(9))),
    Case("merge_clamps", "Clip(Relu(%x), (), $0)", "Clip(%x, $1, $0)", (f(0.5), f(0))),
    Case("merge_clamps", "Relu(Clip(%x, $0, $1))", "Clip(%x, $0, $1)", (f(0), f(0.5))),
    Case("merge_clamps", "Clip(Relu(%x), $0)", "Relu(%x)", (f(-1),)),
    Case(
        "merge_clamps",
        "Clip(Clip(%x, $0, $1), $2)",
        "Clip(%x, $0, $1)",
        tuple(np.array(v, np.int32) for v in (-5, 5, -9)),
        INTEGERS,
    ),
    # casting
    Case("cast_to_same_type", "Cast(%x, to=1)", "%x"),
    Case("cast_of_lossless_cast", "Cast(Cast(%x, to=11), to=10)", "Cast(%x, to=10)"),
    Case("cast_of_lossless_cast", "Cast(Cast(%x, to=1), to=10)", "%x", (), HALF),
    Case("cast_of_lossless_cast", "Cast(Cast(%x, to=6), to=1)", "Cast(%x, to=1)", (), FLAGS),
    # reshaping
    Case("same_shape", "Reshape(%x, $0)", "%x", (i(-1, 3),)),
    Case("same_shape", "Reshape(%x, $0)", "%x", (i(-1, 4, 6),), BATCH),
    Case("same_shape", "Flatten(%x)", "%x"),
    Case("reshape_of_reshape", "Reshape(Reshape(%x, $0), $1)", "Reshape(%x, $1)", (i(6), i(3, 2))),
    Case("reshape_of_reshape", "Flatten(Unsqueeze(%x, $0))", "%x", (i(1),)),
    Case(
        "reshape_of_reshape",
        "Squeeze(Flatten(%x, axis=3), $0)",
        "Reshape(%x, $1)",
        (i(1), i(30)),
        "%x: Tensor[(1, 5, 6, 1), float32]",
    ),
    Case(
        "reshape_of_reshape",
        "Reshape(Reshape(%x, $0), $1)",
        "Reshape(%x, $2)",
        (i(-1, 24), i(-1, 2, 12), i(0, 2, 12)),
        BATCH,
    ),
    Case(
        "reshape_to_fixed_shape",
        "Reshape(Flatten(%x), $0)",
        "Reshape(%x, $0)",
        (i(-1, 5),),
        "%x: Tensor[(N, M, 10), float32]",
    ),
    Case(
        "unsqueeze_of_squeeze",
        "Unsqueeze(Squeeze(%x, $0), $1)",
        "%x",
        (i(1), i(-2)),
        "%x: Tensor[(A, 1, B), float32]",
    ),
    Case(
        "unsqueeze_of_squeeze",
        "Squeeze(Unsqueeze(%x, $0), $1)",
        "%x",
        (i(0, -1), i(3, 0)),
        "%x: Tensor[(?, ?), float32]",
    ),
    # transposing
    Case("identity_transpose", "Transpose(%x, perm=[0, 1])", "%x"),
    Case("transpose_of_transpose", "Transpose(Transpose(%x))", "%x"),
    Case(
        "transpose_of_transpose",
        "Transpose(Transpose(%x, perm=[0, 2, 3, 1]), perm=[1, 0, 2, 3])",
        "Transpose(%x, perm=[2, 0, 3, 1])",
        (),
        IMAGE,
    ),
    Case(
        "transpose_of_unit_axes",
        "Transpose(%x, perm=[0, 2, 3, 1])",
        "Reshape(%x, $0)",
        (i(2, 5, 6, 1),),
        "%x: Tensor[(2, 1, 5, 6), float32]",
    ),
    Case(
        "transpose_of_unit_axes",
        "Reshape(Transpose(%x, perm=[0, 3, 1, 2]), $0)",
        "Reshape(%x, $0)",
        (i(2, 8),),
        "%x: Tensor[(2, 8, 1, 1), float32]",
    ),
    # data_movement
    Case("whole_slice", "Slice(%x, $0, $1)", "%x", (i(0, 0), i(2, 9))),
    Case("whole_slice", "Slice(%x, $0, $1, $2)", "%x", (i(0), i(2**31 - 1), i(0)), BATCH),
    Case("whole_slice", "Slice(%x, $0, $1)", "%x", (i(0), i(2**31 - 1))),
    Case("empty_pad", "Pad(%x, $0)", "%x", (i(0, 0, 0, 0),)),
    Case("expand_to_own_shape", "Expand(%x, $0)", "%x", (i(2, 1),)),
    Case("expand_to_own_shape", "Expand(%x, $0)", "%x", (i(1),), BATCH),
    Case("tile_once", "Tile(%x, $0)", "%x", (i(1, 1),)),
    Case(
        "operand_expanded",
        "Add(%x, Expand(%y, $0))",
        "Add(%x, %y)",
        (i(2, 3),),
        f"{MATRIX}, %y: Tensor[(3,), float32]",
    ),
    Case("concat_of_one", "Concat(%x, axis=0)", "%x"),
    Case(
        "concat_with_empty",
        "Concat(%x, $0, %x, axis=0)",
        "Concat(%x, %x, axis=0)",
        (np.zeros((0, 3), np.float32),),
    ),
    Case(
        "concat_of_all_parts",
        "%s = Split(%x, axis=1, num_outputs=3, outputs=3); Concat(%s.0, %s.1, %s.2, axis=-1)",
        "%x",
    ),
    Case(
        "nested_concat", "Concat(Concat(%x, Exp(%x), axis=1), %x, axis=-1)", "Concat(%x, Exp(%x), %x, axis=1)"
    ),
    Case("part_of_one", "Split(%x, num_outputs=1, outputs=1).0", "%x"),
    Case("tuple_field", "(Exp(%x), %x).1", "%x"),
    # padding
    Case(
        "conv_of_pad",
        "Conv(Pad(%x, $0), $1, pads=[1, 0, 0, 1])",
        "Conv(%x, $1, pads=[1, 1, 2, 1])",
        (i(0, 0, 0, 1, 0, 0, 2, 0), np.ones((1, 4, 3, 3), np.float32)),
        IMAGE,
    ),
    # windows
    Case(
        "conv_with_less_taps",
        "Conv(%x, $0, pads=[6, 1, 6, 1], dilations=[6, 1])",
        "Conv(%x, $1, kernel_shape=[1, 3], pads=[0, 1, 0, 1], dilations=[6, 1])",
        (WINDOW, WINDOW[:, :, 1:2]),
        IMAGE,
    ),
    Case(
        "conv_with_less_taps",
        "Conv(%x, $0, pads=[1, 0, 1, 0], dilations=[3, 1])",
        "Conv(Slice(%x, $2, $3, $4), $1, kernel_shape=[1, 3], pads=[0, 0, 0, 0], dilations=[3, 1])",
        (WINDOW, WINDOW[:, :, 1:2], i(2), i(3), i(2)),
        IMAGE,
    ),
    # reducing
    Case("reduce_nothing", "ReduceSum(%x, noop_with_empty_axes=1)", "%x"),
    Case("reduce_nothing", "ReduceMean(%x, $0, noop_with_empty_axes=1)", "%x", (i(),)),
    Case("reduce_unit_axes", "ReduceMax(%x, $0)", "%x", (i(1),), "%x: Tensor[(2, 1), float32]"),
    Case(
        "reduce_unit_axes",
        "ReduceMean(%x, $0, keepdims=0)",
        "Reshape(%x, $1)",
        (i(1), i(2)),
        "%x: Tensor[(2, 1), float32]",
    ),
    Case("pool_of_one", "MaxPool(%x, kernel_shape=[1, 1])", "%x", (), IMAGE),
    Case("pool_of_one", "AveragePool(%x, kernel_shape=[1, 1], strides=[1, 1])", "%x", (), IMAGE),
    Case("global_pool_of_one", "GlobalAveragePool(%x)", "%x", (), "%x: Tensor[(2, 4, 1, 1), float32]"),
    # reassociation
    Case("merge_sums", "Sub(Add(%x, $0), $1)", "Add(%x, $2)", (f(1, 2, 3), f(1), f(0, 1, 2))),
    Case(
        "merge_sums",
        "Add(Sub(%x, $0), $1)",
        "Add(%x, $2)",
        tuple(np.array([v], np.int32) for v in (7, 2, -5)),
        INTEGERS,
    ),
    Case("merge_products", "Div(Mul($0, %x), $1)", "Mul(%x, $2)", (f(3), f(2), f(1.5))),
)
"""What is simplified."""
