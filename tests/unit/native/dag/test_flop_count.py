import pytest
from tests.native_workloads import argmax_nm, conv2d_nchw_bn_relu, matmul, max_pool2d, min_nm

from intarsia.ir import DType
from intarsia.native import te
from intarsia.native.dag import ComputeDAG, flop_count
from intarsia.native.peak import DotKind

N = 16


def count(*tensors: te.Tensor) -> int:
    return ComputeDAG(tensors).flop_ct


def test_a_product_of_matrices_is_two_for_each_step() -> None:
    assert count(*matmul(N, N, N)) == 2 * N**3
    assert count(*matmul(512, 512, 512)) == 2 * 512**3


def test_relu_adds_one_for_each_element() -> None:
    a, b, c = matmul(N, N, N)
    relu = te.compute((N, N), lambda i, j: te.maximum(c[i, j], 0.0), name="D")
    assert count(a, b, relu) == 2 * N**3 + N**2
    compared = te.compute((N, N), lambda i, j: te.if_then_else(c[i, j] > 0.0, c[i, j], 0.0), name="E")
    assert count(a, b, compared) == 2 * N**3 + N**2


def test_padding_counts_nothing() -> None:
    data, *_, out = conv2d_nchw_bn_relu(padding=1)
    (padding,) = (op for op in ComputeDAG((out,)).ops if op.name == "padding")
    assert flop_count([data.op, padding]) == 0


def test_a_branch_counts_what_is_in_it() -> None:
    a, b, c = matmul(N, N, N)
    d = te.compute((N, N), lambda i, j: te.if_then_else(i < 3, c[i, j] + 1.0, 0.0), name="D")
    assert count(a, b, d) == 2 * N**3 + N**2
    e = te.compute((N, N), lambda i, j: te.if_then_else(i < 3, c[i, j] + 1.0, c[i, j] * 2.0 - 1.0), name="E")
    assert count(a, b, e) == 2 * N**3 + 3 * N**2


def test_of_a_choice_the_dearer_value_counts() -> None:
    a = te.placeholder((N,), name="A")
    b = te.compute((N,), lambda i: te.select(a[i] > 0.0, a[i] + 1.0, a[i] * a[i] * a[i]), name="B")
    assert count(a, b) == 3 * N


def test_an_attribute_stands_for_the_operation() -> None:
    a = te.placeholder((N,), name="A")
    b = te.compute((N,), lambda i: a[i] + 1.0, name="B", attrs={"FLOP": 1234})
    assert count(a, b) == 1234


def test_values_of_another_class_than_the_result_do_not_count() -> None:
    a = te.placeholder((N,), DType.INT32, name="A")
    b = te.compute((N,), lambda i: (a[i] + 1).astype(DType.FLOAT32), name="B")
    assert count(a, b) == 0
    c = te.compute((N,), lambda i: a[i] + 1, name="C")
    assert count(a, c) == N
    d = te.compute((N,), lambda i: te.exp(b[i]), name="D")
    assert count(a, d) == 0
    e = te.compute((N,), lambda i: a[i] < 3, name="E")
    assert count(a, e) == 0


def test_reductions() -> None:
    assert count(*min_nm(6, 10)) == 60
    assert count(*max_pool2d(1, 6, 6, 3, 0)) == 3 * 5 * 5 * 4
    assert count(*argmax_nm(5, 7)) == 5 * 7 * 2


@pytest.mark.parametrize("kind", list(DotKind))
def test_a_dot_is_as_many_products_and_sums(kind: DotKind) -> None:
    a, b = (te.placeholder((N, N), kind.dtype, name) for name in "ab")
    k = te.reduce_axis(N, "k")
    c = te.compute((N, N), lambda i, j: te.sum(kind.product(a[i, k], b[k, j]), k), name="c")
    assert count(a, b, c) == 2 * kind.value * N**3
    assert ComputeDAG((a, b, c)).lane_flop_ct == 2 * N**3
