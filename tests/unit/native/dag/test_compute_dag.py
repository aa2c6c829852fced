import pickle

import pytest
from tests.each_case import each_case
from tests.native_workloads import (
    WORKLOADS,
    argmax_nm,
    conv2d_nchw_bn_relu,
    double_matmul,
    invalid_compute_definition,
    matmul,
    parallel_matmul,
)

from intarsia.native import te
from intarsia.native.dag import ComputeDAG, structural_key
from intarsia.native.te.tensor import ComputeOp
from intarsia.support.errors import UsageError


def names(dag: ComputeDAG) -> list[str]:
    return [op.name for op in dag.ops]


def test_operations_come_after_what_they_read_in_the_fields_order() -> None:
    assert names(ComputeDAG(matmul())) == ["A", "B", "C"]
    assert names(ComputeDAG(double_matmul())) == ["A", "B", "C", "D", "E"]
    assert names(ComputeDAG(parallel_matmul())) == ["A", "B", "D", "C", "E"]
    assert names(ComputeDAG(conv2d_nchw_bn_relu())) == [
        *("data", "padding", "kernel", "conv", "bias", "bias_add"),
        *("bn_scale", "bn_mul", "bn_offset", "bn_add", "relu"),
    ]


@each_case("name", WORKLOADS)
def test_the_order_does_not_depend_on_what_is_listed(name: str) -> None:
    tensors = WORKLOADS[name]()
    whole = ComputeDAG(tensors)
    results = [tensor for tensor in tensors if isinstance(tensor.op, ComputeOp)]
    assert ComputeDAG(tuple(results)).ops == whole.ops
    assert {op for op, readers in whole.readers.items() if not readers} == {tensor.op for tensor in results}


def test_placeholders_and_outputs() -> None:
    a, b, c, d, e = parallel_matmul()
    dag = ComputeDAG((a, b, c, d, e))
    assert dag.placeholders == (a, b, c)
    assert dag.outputs == (d, e)
    assert ComputeDAG((e, a, d)).outputs == (e, d)
    assert dag.is_output(d.op)
    assert not dag.is_output(a.op)


def test_a_listed_tensor_that_is_read_is_an_output_too() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((4,), lambda i: b[i] * 2.0, name="C")
    assert ComputeDAG((a, c)).outputs == (c,)
    assert ComputeDAG((a, b, c)).outputs == (b, c)
    assert ComputeDAG((a, b)).outputs == (b,)
    assert names(ComputeDAG((a, b))) == ["A", "B"]


def test_of_several_results_those_listed_are_outputs_and_all_if_none_is() -> None:
    a, where, largest = argmax_nm()
    assert ComputeDAG((a, where)).outputs == (where,)
    assert ComputeDAG((a, largest, where)).outputs == (largest, where)
    assert ComputeDAG((a,), ComputeDAG((where,)).ops).outputs == (where, largest)


def test_readers_in_order_and_once() -> None:
    x = te.placeholder((4, 4), name="X")
    k = te.reduce_axis(4, "k")
    y = te.compute((4, 4), lambda i, j: te.sum(x[i, k] * x[k, j], axis=k), name="Y")
    dag = ComputeDAG((x, y))
    assert dag.readers[x.op] == (y.op,)
    assert dag.readers[y.op] == ()
    assert dag.op_ids[y.op] == 1


def test_a_long_chain() -> None:
    tensor = te.placeholder((2,), name="t")
    for number in range(1200):
        before = tensor
        tensor = te.compute((2,), lambda i, before=before: before[i] + 1.0, name=f"t{number}")
    dag = ComputeDAG((tensor,))
    assert len(dag.ops) == 1201
    assert dag.flop_ct == 2400
    assert len(pickle.loads(pickle.dumps(dag)).ops) == 1201


def test_loops_with_one_name_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        ComputeDAG(invalid_compute_definition())
    assert str(caught.value) == (
        "operation B: several axes are named i_0\nhelp: rename axes; `.` and `@` count as `_`"
    )


def test_operations_with_one_name_are_refused() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="A")
    with pytest.raises(UsageError) as caught:
        ComputeDAG((a, b))
    assert str(caught.value) == (
        "two operations are named A; expected different names\nhelp: give each operation a name of its own"
    )


def test_a_given_order_must_fit() -> None:
    a, b, c = matmul()
    with pytest.raises(UsageError, match="operation C reads A, which is not computed before"):
        ComputeDAG((a, b, c), (b.op, c.op, a.op))
    with pytest.raises(UsageError, match="tensor C is no result of the operations given"):
        ComputeDAG((a, b, c), (a.op, b.op))


@each_case("name", WORKLOADS)
def test_a_pickled_dag_is_the_same_dag(name: str) -> None:
    dag = ComputeDAG(WORKLOADS[name]())
    assert dag.readers
    assert dag.op_ids
    again = pickle.loads(pickle.dumps(dag))
    assert str(again) == str(dag)
    assert structural_key(again) == structural_key(dag)
