"""Operators on rows: one loop over rows, vectors within a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.compute_rule_checks import reference, rule_call
from tests.default_schedules import Array, assert_matches_declared, run_scheduled
from tests.emitted_kernels import x86_sets
from tests.native_workloads import argmax_nm, layer_norm, min_nm, softmax_abcd, softmax_nm

from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state
from intarsia.native.te.operators import compute, compute_call_of

pytestmark = pytest.mark.quick_tests(
    11,
    also=[
        "test_operators_as_onnx_declares_them[RMSNormalization-shapes3]",
        "test_rows_of_every_length[size5-argmax_nm-host]",
    ],
)

SETS = x86_sets()
SIZES = ((1, 1), (3, 2), (5, 33), (2, 67), (1, 128), (4, 130), (70, 300))


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("make", [softmax_nm, layer_norm, min_nm, argmax_nm])
@pytest.mark.parametrize("size", SIZES)
def test_rows_of_every_length(make: object, size: tuple[int, int], isa: Isa) -> None:
    assert callable(make)
    assert_matches_declared(ComputeDAG(make(*size)), isa, threads=2, tolerance=1e-4)


def test_rows_of_several_axes_are_one_loop() -> None:
    dag = ComputeDAG(softmax_abcd(2, 3, 40, 80))
    state = default_state(dag, Isa.host(), 2)
    assert [loop.extent for loop in state["norm"].iters] == [240, 80]
    assert {stage.compute_at for stage in state.stages[1:-1]} == {ComputeAt.ITER}
    assert_matches_declared(dag, Isa.host(), threads=2)


@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
def test_positions_in_short_rows_are_computed_for_vectors_of_rows(isa: Isa) -> None:
    x = np.random.default_rng(4).standard_normal((500, 3)).astype(np.float32)
    dag = ComputeDAG(compute(compute_call_of(rule_call("ArgMax", [x], axis=1, keepdims=0), "t")))
    state = default_state(dag, isa, 1)
    assert state["t.found"].compute_at is ComputeAt.ROOT
    assert state["t.found"].iters[-1].annotation is IteratorAnnotation.VECTORIZE
    (positions,) = run_scheduled(dag, {"t.x0": x}, isa)
    np.testing.assert_array_equal(positions, x.argmax(1))


@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("columns", [3, 5, 6, 7])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_sums_of_short_rows_are_computed_for_vectors_of_rows(isa: Isa, columns: int, keepdims: int) -> None:
    x = np.random.default_rng(6).standard_normal((123, columns)).astype(np.float32)
    args = [x, np.array([1])]
    dag = ComputeDAG(compute(compute_call_of(rule_call("ReduceMax", args, keepdims=keepdims), "t")))
    (found,) = run_scheduled(dag, {"t.x0": x}, isa)
    np.testing.assert_array_equal(found, x.max(1, keepdims=bool(keepdims)))
    reducing = (stage for stage in default_state(dag, isa, 1).stages if _reduces(stage.op))
    loops = [stage.iters[-1] for stage in reducing]
    assert loops
    least = isa.vector_bytes // 8 + 1 if "avx512vl" in isa.features else isa.vector_bytes // 2
    assert columns >= least or all(loop.annotation is IteratorAnnotation.VECTORIZE for loop in loops)


def _reduces(op: te.Operation) -> bool:
    return isinstance(op, te.ComputeOp) and op.combiner is not None


@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
def test_exponentials_of_short_rows_are_vectors(isa: Isa) -> None:
    x = np.random.default_rng(4).standard_normal((50, 4)).astype(np.float32)
    dag = ComputeDAG(compute(compute_call_of(rule_call("LogSoftmax", [x], axis=1), "t")))
    stage = default_state(dag, isa, 1)["t.exp"]
    assert stage.compute_at is ComputeAt.ITER
    assert stage.iters[-1].annotation is IteratorAnnotation.VECTORIZE


@pytest.mark.parametrize("axis", [0, 1])
def test_exponentials_that_only_a_sum_reads_are_computed_there(axis: int) -> None:
    x = np.random.default_rng(4).standard_normal((40, 70)).astype(np.float32)
    dag = ComputeDAG(compute(compute_call_of(rule_call("LogSoftmax", [x], axis=axis), "t")))
    assert default_state(dag, Isa.host(), 1)["t.exp"].compute_at is ComputeAt.INLINED
    (logs,) = run_scheduled(dag, {"t.x0": x}, Isa.host())
    np.testing.assert_allclose(logs, reference("LogSoftmax", [x], axis=axis)[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("Softmax", [(3, 5, 90)]),
        ("LogSoftmax", [(7, 100)]),
        ("LayerNormalization", [(6, 200), (200,), (200,)]),
        ("RMSNormalization", [(6, 200), (200,)]),
        ("InstanceNormalization", [(2, 3, 8, 9), (3,), (3,)]),
        ("Gelu", [(3, 333)]),
        ("Sigmoid", [(1000,)]),
    ],
)
def test_operators_as_onnx_declares_them(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    random = np.random.default_rng(3)
    args: list[Array] = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    dag = ComputeDAG(compute(compute_call_of(rule_call(name, args), "t")))
    inputs = {f"t.x{place}": arg for place, arg in enumerate(args)}
    (found,) = run_scheduled(dag, inputs, Isa.host(), threads=2)
    np.testing.assert_allclose(found, reference(name, args)[0], rtol=2e-5, atol=2e-5)


def test_not_a_number_reaches_the_maximum() -> None:
    x = np.zeros((4, 100), np.float32)
    x[2, 37] = np.nan
    data = te.placeholder((4, 100), name="x")
    k = te.reduce_axis(100, "k")
    dag = ComputeDAG((te.compute((4,), lambda i: te.max(data[i, k], axis=k), name="largest"),))
    (found,) = run_scheduled(dag, {"x": x}, Isa.host())
    np.testing.assert_array_equal(np.isnan(found), [False, False, True, False])


@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
def test_softmax_of_special_values(name: str, isa: Isa) -> None:
    x = np.random.default_rng(5).standard_normal((7, 21)).astype(np.float32)
    x[1, 3], x[2, :], x[3, 4], x[4, :20], x[5, 0] = np.nan, -np.inf, np.inf, -np.inf, 50
    x[6, :] = -3e38
    dag = ComputeDAG(compute(compute_call_of(rule_call(name, [x]), "t")))
    (found,) = run_scheduled(dag, {"t.x0": x}, isa)
    with np.errstate(all="ignore"):
        expected = reference(name, [x])[0]
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)


def test_two_results_of_one_row() -> None:
    data = te.placeholder((9, 70), name="x")
    k = te.reduce_axis(70, "k")
    total = te.compute((9,), lambda i: te.sum(data[i, k], axis=k), name="total")
    mean = te.compute((9,), lambda i: total[i] / 70.0, name="mean")
    centred = te.compute((9, 70), lambda i, j: data[i, j] - mean[i], name="centred")
    assert_matches_declared(ComputeDAG((data, mean, centred)), Isa.host(), tolerance=1e-4)
