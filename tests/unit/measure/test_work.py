"""Work of functions, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
from tests.each_case import each_case

from intarsia.ir import Constant, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.work import Work, work_of
from intarsia.op import call
from intarsia.op.work import reduction_length


def x(*shape: int) -> Var:
    return Var("x", checked_type=TensorType(shape, "float32"))  # type: ignore[arg-type]  # any spelling is accepted


def weight(*shape: int) -> Constant:
    return Constant(np.zeros(shape, np.float32))


def axes(*values: int) -> Constant:
    return Constant(np.array(values, np.int64))


@each_case(
    ("expr", "length"),
    [
        (call("Conv", x(1, 16, 8, 8), weight(4, 16, 3, 3)), 144),
        (call("Conv", x(1, 16, 8, 8), weight(16, 1, 3, 3), group=16), 9),
        (call("ConvTranspose", x(1, 16, 8, 8), weight(16, 4, 2, 2)), 64),
        (call("MatMul", x(2, 5, 7), weight(7, 3)), 7),
        (call("Gemm", x(7, 5), weight(7, 3), transA=1), 7),
        (call("Gemm", x(5, 7), weight(7, 3)), 7),
        (call("ReduceSum", x(2, 3, 4), axes(1, 2)), 12),
        (call("GlobalAveragePool", x(1, 3, 5, 5)), 25),
        (call("AveragePool", x(1, 3, 5, 5), kernel_shape=(3, 2)), 6),
        (call("Softmax", x(2, 10)), 10),
        (call("CumSum", x(2, 10), axes(1)), 10),
        (call("LayerNormalization", x(2, 10, 1), weight(1)), 10),
        (call("InstanceNormalization", x(2, 3, 4, 5), weight(3), weight(3)), 60),
        (call("LpPool", x(1, 3, 5, 5), kernel_shape=(2, 2)), 4),
        (call("RNN", x(7, 2, 3), weight(1, 4, 3), weight(1, 4, 4), outputs=1, hidden_size=4), 7 * (3 + 4)),
        (call("Einsum", x(2, 5), weight(5, 3), equation="ij,jk->ik"), 7),
        (call("Relu", x(2, 10)), 1),
        (x(2, 10), 1),
    ],
)
def test_reduction_length(expr: Expr, length: int) -> None:
    assert reduction_length(expr) == length


def test_work_of_a_chain_counts_products_and_depth() -> None:
    data = x(1, 8)
    hidden = call("Relu", call("MatMul", data, weight(8, 4)))
    module = IRModule.from_expr(Function((data,), call("MatMul", hidden, weight(4, 2))))
    assert work_of(module) == Work(multiply_adds=32 + 8, reduction_length=8, depth=2, quantized=False)


def test_parallel_branches_do_not_add_to_the_depth() -> None:
    data = x(1, 8)
    both = call("Add", call("MatMul", data, weight(8, 4)), call("MatMul", data, weight(8, 4)))
    assert work_of(IRModule.from_expr(Function((data,), both))).depth == 1


def test_quantized_programs_are_recognised() -> None:
    data = x(1, 8)
    body = call("QuantizeLinear", data, Constant(np.array(0.5, np.float32)), Constant(np.array(0, np.uint8)))
    assert work_of(IRModule.from_expr(Function((data,), body))).quantized
