"""What steps do to DAGs: the values of the outputs stay."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.native_workloads import WORKLOADS, argmax_nm, conv2d_winograd_nhwc, matmul
from tests.te_evaluator import evaluate

from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.cache_read import cache_read
from intarsia.native.dag.cache_write import cache_write
from intarsia.native.loop_state import LoopState
from intarsia.native.te.tensor import ComputeOp

Array = npt.NDArray[Any]


def results(dag: ComputeDAG) -> list[Array]:
    """The outputs on small integers, so that sums are exact in any order."""
    rng = np.random.default_rng(7)
    placeholders = sorted(dag.placeholders, key=lambda tensor: tensor.buffer.name)
    feeds = {
        tensor.buffer.name: rng.integers(-3, 4, tensor.shape).astype(tensor.dtype.numpy)
        for tensor in placeholders
    }
    return evaluate(dag.outputs, feeds)


def assert_same(before: ComputeDAG, after: ComputeDAG) -> None:
    assert [tensor.buffer for tensor in after.outputs] == [tensor.buffer for tensor in before.outputs]
    for expected, found in zip(results(before), results(after), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_copies_before_and_behind_every_operation(name: str) -> None:
    dag = ComputeDAG(WORKLOADS[name]())
    for place, op in enumerate(dag.ops):
        if dag.readers[op]:
            after = cache_read(dag, place, "shared", dag.readers[op])
            assert after.ops[place + 1].name == f"{op.name}.shared"
            assert [reader.name for reader in after.readers[after.ops[place]]] == [f"{op.name}.shared"]
            assert_same(dag, after)
        if isinstance(op, ComputeOp):
            after = cache_write(dag, place, "local")
            assert [each.name for each in after.ops[place : place + 2]] == [f"{op.name}.local", op.name]
            assert_same(dag, after)


@pytest.mark.quick_cases(14)
@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("lengths", [[2], [3], [5, 2], [100]])
def test_partial_results_of_every_reduction(name: str, lengths: list[int]) -> None:
    dag = ComputeDAG(WORKLOADS[name]())
    for op in dag.ops:
        if not (isinstance(op, ComputeOp) and op.reduce_axes):
            continue
        axes = [axis.name for axis in op.reduce_axes]
        fused = LoopState.initial(dag) if len(axes) == 1 else LoopState.initial(dag).fuse(op, axes)
        place = len(op.axes)
        state = fused.split(op, place, lengths)
        for loop in range(place, len(state[op].iters)):
            assert_same(dag, state.rfactor(op, loop, place).current_dag)
        assert_same(dag, fused.rfactor(op, place, 0).current_dag)


def test_other_split_forms_and_reordered_reductions() -> None:
    dag = ComputeDAG(conv2d_winograd_nhwc())
    state = LoopState.initial(dag).split("inverse", "r_b", [4], inner_to_outer=False)
    reordered = state.reorder("inverse", ["vh", "r_b.1", "vw", "p", "r_a", "co", "r_b.0"])
    after = reordered.rfactor("inverse", "r_b.1", 2)
    partial = after["inverse.rf"].op
    assert isinstance(partial, ComputeOp)
    assert [axis.name for axis in partial.axes] == ["vh", "vw", "r_b_1", "p", "co"]
    assert [axis.name for axis in partial.reduce_axes] == ["r_a", "r_b_0"]
    assert_same(dag, after.current_dag)


def test_only_one_reader_gets_the_copy() -> None:
    x = te.placeholder((4,), name="X")
    y = te.compute((4,), lambda i: x[i] + 1.0, name="Y")
    z = te.compute((4,), lambda i: x[i] * y[i], name="Z")
    dag = ComputeDAG((x, z))
    after = cache_read(dag, 0, "shared", [z.op])
    assert str(after) == (
        "X = PLACEHOLDER [4]\nX.shared(ax0) = X[ax0]\nY(i) = (X[i]+1f)\nZ(i) = (X.shared[i]*Y[i])\n"
    )
    twice = cache_read(after, 0, "shared", [after.ops[2]])
    assert [op.name for op in twice.ops] == ["X", "X.shared.1", "X.shared", "Y", "Z"]
    assert_same(dag, twice)


def test_all_results_go_through_one_cache() -> None:
    dag = ComputeDAG(argmax_nm())
    state = LoopState.initial(dag).cache_write("argmax", "local")
    assert [stage.op.name for stage in state.stages] == ["A", "argmax.local", "argmax"]
    assert str(state.current_dag).splitlines()[3:] == [
        "argmax.v0(i) = argmax.local.v0[i]",
        "argmax.v1(i) = argmax.local.v1[i]",
    ]


def test_attributes_go_with_the_computation_and_name_its_axes() -> None:
    state = LoopState.initial(ComputeDAG(matmul())).cache_write("C", "local")
    assert dict(state["C.local"].op.attrs) == {"layout_free_placeholders": ("B",)}
    assert not state["C"].op.attrs
    winograd = LoopState.initial(ComputeDAG(conv2d_winograd_nhwc())).cache_write("inverse", "local")
    listed = winograd["inverse.local"].op.attrs["auto_scheduler_simplify_const_tensor_indices"]
    assert listed == ("vh.c", "vw.c", "r_a", "r_b")


def test_the_axes_of_a_cache_never_clash() -> None:
    a = te.placeholder((4, 4), name="A")
    k = te.reduce_axis(4, "i_c")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    dag = ComputeDAG((a, b))
    state: LoopState = LoopState.initial(dag).cache_write(b, "local")
    assert [loop.name for loop in state["B.local"].iters] == ["i_cc", "i_c"]
    assert_same(dag, state.current_dag)
    partial = LoopState.initial(dag).split(b, "i_c", [2]).rfactor(b, "i_c.0", 0)
    assert_same(dag, partial.current_dag)
