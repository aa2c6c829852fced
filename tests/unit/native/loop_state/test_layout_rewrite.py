from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.native_workloads import conv2d_nchw_bn_relu, matmul

from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewrite, LayoutRewriteOption, rewrite_layout
from intarsia.native.lowering.lower import infer_bound, lower
from intarsia.native.packing import Packing, Part
from intarsia.native.tir.interpret import interpret

Array = npt.NDArray[Any]
INSERT = LayoutRewriteOption.INSERT_TRANSFORM_STAGE
PACKED = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED


def tiled(dag: ComputeDAG, i: list[int], j: list[int]) -> LoopState:
    """The field's tiled product, in a cache stage that two loops of its copy hold."""
    state = LoopState.initial(dag).cache_write("C", "local")
    state = state.split("C.local", "i_c", i[1:]).split("C.local", "j_c", j[1:])
    state = state.split("C", "i", [i[-1]]).split("C", "j", [j[-1]])
    return infer_bound(dag, state.reorder("C", ["i.0", "j.0", "i.1", "j.1"]))


def arguments(dag: ComputeDAG) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    given = {t.buffer.name: rng.integers(-3, 4, t.shape).astype(np.float32) for t in dag.placeholders}
    return given | {t.buffer.name: np.zeros(t.shape, np.float32) for t in dag.outputs}


def results(state: LoopState, arrays: dict[str, Array]) -> list[Array]:
    arrays = {name: array.copy() for name, array in arrays.items()}
    interpret(lower(state.initial_dag, state), arrays)
    return [arrays[tensor.buffer.name] for tensor in state.initial_dag.outputs]


def assert_same(before: LoopState, after: LayoutRewrite) -> None:
    arrays = arguments(before.initial_dag)
    packed = {packing.tensor_name: packing.pack(arrays[packing.tensor_name]) for packing in after.packings}
    expected, found = results(before, arrays), results(after.state, arrays | packed)
    np.testing.assert_array_equal(expected, found)


def test_the_fields_tiled_product() -> None:
    dag = ComputeDAG(matmul(512, 512, 512))
    state = LoopState.initial(dag).split("C", "i", [8, 8]).split("C", "j", [8, 4, 4])
    state = state.reorder("C", ["i.0", "j.0", "i.1", "j.1", "i.2", "j.2", "j.3", "k"])
    after = rewrite_layout(state, PACKED)
    assert after.state["B"].op.buffers[0].shape == (4, 8, 4, 4, 512)
    assert after.packings == (
        Packing("B", (512, 512), (Part(1, 4), Part(1, 8), Part(1, 4), Part(1, 4), Part(0, 512))),
    )
    assert after.state.transform_steps == state.transform_steps
    assert str(after.state) == str(state)


@pytest.mark.parametrize("option", [INSERT, PACKED])
@pytest.mark.parametrize(
    ("sizes", "i", "j"),
    [((8, 8, 4), [2, 2, 2], [2, 2, 2]), ((6, 7, 5), [2, 3], [2, 4]), ((1, 1, 1), [1, 1], [1, 1])],
)
def test_results_stay(
    option: LayoutRewriteOption, sizes: tuple[int, int, int], i: list[int], j: list[int]
) -> None:
    dag = ComputeDAG(matmul(*sizes))
    state = tiled(dag, i, j)
    attached = infer_bound(dag, state.compute_at("C.local", "C", "j.0"))
    for each in (state, attached, LoopState.initial(dag)):
        assert_same(each, rewrite_layout(each, option))


def test_a_stage_that_packs_is_parallel_and_shifts_the_history() -> None:
    dag = ComputeDAG(matmul(8, 8, 8))
    state = tiled(dag, [2, 4], [2, 2, 2])
    after = rewrite_layout(state, INSERT).state
    name = "auto_scheduler_layout_transform.B"
    assert [stage.op.name for stage in after.stages] == ["A", "B", name, "C.local", "C"]
    assert [stage.op.name for stage in LoopState.initial(after.initial_dag).stages] == ["A", "B", name, "C"]
    assert str(after).splitlines()[1:4] == [
        "parallel ax0@ax1@ (0,4)",
        "  for ax2 (0,2)",
        "    for ax3 (0,8)",
    ]
    assert [step.stage_id for step in after.transform_steps] == [3, 3, 3, 4, 4, 4, 2, 2]
    assert_same(state, LayoutRewrite(after, ()))


def test_the_order_of_the_loops_around_a_cache_stage_counts() -> None:
    dag = ComputeDAG(matmul(8, 8, 8))
    state = (
        LoopState.initial(dag)
        .cache_write("C", "local")
        .split("C", "j", [4])
        .compute_at("C.local", "C", "j.0")
    )
    ranged = infer_bound(dag, state)
    (packing,) = rewrite_layout(ranged, PACKED).packings
    assert packing.parts == (Part(1, 2), Part(1, 4), Part(0, 8))


@pytest.mark.parametrize("option", [INSERT, PACKED])
def test_fused_loops_are_taken_apart(option: LayoutRewriteOption) -> None:
    dag = ComputeDAG(matmul(8, 8, 8))
    state = LoopState.initial(dag).split("C", "j", [4]).fuse("C", ["i", "j.0"]).reorder("C", [0, 2, 1])
    after = rewrite_layout(state, option)
    assert_same(state, after)
    expected = (Part(1, 2), Part(0, 8), Part(1, 4))
    assert (after.packings[0].parts if option is PACKED else expected) == expected


def test_what_is_not_rewritten() -> None:
    dag = ComputeDAG(matmul(8, 8, 8))
    ordered = LoopState.initial(dag).reorder("C", ["i", "k", "j"])
    assert rewrite_layout(ordered, PACKED) == LayoutRewrite(ordered, ())
    assert rewrite_layout(LoopState.initial(dag), LayoutRewriteOption.NO_REWRITE) == LayoutRewrite(
        LoopState.initial(dag), ()
    )
    conv = LoopState.initial(ComputeDAG(conv2d_nchw_bn_relu()))
    assert rewrite_layout(conv, PACKED).state is conv
    copied = LoopState.initial(dag).cache_read("B", "shared", ["C"])
    assert rewrite_layout(copied, PACKED).state is copied


def test_what_is_read_twice_or_at_sums_is_not_rewritten() -> None:
    a = te.placeholder((4, 4), name="A")
    k = te.reduce_axis(4, "k")
    attrs = {"layout_free_placeholders": ("A",)}
    squared = te.compute((4, 4), lambda i, j: te.sum(a[i, k] * a[k, j], axis=k), name="C", attrs=attrs)
    moved = te.compute((2, 4), lambda i, j: a[j, i + 1], name="C", attrs=attrs)
    diagonal = te.compute((4,), lambda i: a[i, i], name="C", attrs=attrs)
    for tensor in (squared, moved, diagonal):
        state = LoopState.initial(ComputeDAG((a, tensor)))
        assert rewrite_layout(state, PACKED).state is state
