"""Lowered schedules: how loops are carried out, where neutral elements and tiles stand, what is refused."""

import re
from dataclasses import replace

import pytest
from tests.native_workloads import conv2d_nchw_bn_relu, double_matmul, matmul, softmax_nm, zero_rank_compute
from tests.properties.lowering_programs import running_sum
from tests.properties.test_lowering_states import check_results

from intarsia.ir import GlobalVar, IRModule
from intarsia.ir.printer import print_module
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation, LoopState
from intarsia.native.lowering import infer_bound, infer_bounds, lower, lower_naive
from intarsia.support.errors import UsageError


def text(state: LoopState) -> str:
    """The lowered text, after what it computes was checked."""
    check_results(state, 0)
    return print_module(IRModule({GlobalVar("main"): lower(state.initial_dag, state)})).text


def heads(state: LoopState) -> list[str]:
    """The heads of the loops, in the order of the text."""
    return re.findall(r"for (.*) \{", text(state))


PRODUCT = ComputeDAG(matmul(6, 4, 8))


def test_without_steps_it_is_the_naive_lowering() -> None:
    assert lower(PRODUCT, LoopState.initial(PRODUCT)) == lower_naive(PRODUCT.outputs)


def test_annotations_of_spatial_loops_stay() -> None:
    state = LoopState.initial(PRODUCT).parallel("C", "i").vectorize("C", "j").unroll("C", "k")
    assert heads(state) == ["parallel i in 6", "vectorized j in 4", "unrolled k in 8"]


def annotated(state: LoopState, loop: str, annotation: IteratorAnnotation) -> LoopState:
    """With an annotation that no step would give."""
    loops = tuple(
        replace(each, annotation=annotation) if each.name == loop else each for each in state["C"].iters
    )
    return state.with_stage(state.stage_id("C"), iters=loops)


@pytest.mark.parametrize("annotation", [IteratorAnnotation.PARALLEL, IteratorAnnotation.VECTORIZE])
def test_reductions_are_neither_parallel_nor_vectorised(annotation: IteratorAnnotation) -> None:
    assert heads(annotated(LoopState.initial(PRODUCT), "k", annotation))[-1] == "k in 8"
    mixed = annotated(LoopState.initial(PRODUCT).fuse("C", ["j", "k"]), "j@k@", annotation)
    assert heads(mixed) == ["i in 6", "j in 4", "j_k in 32"]


def test_parallel_loops_are_not_nested() -> None:
    state = LoopState.initial(PRODUCT).cache_write("C", "local").compute_at("C.local", "C", "i")
    state = state.parallel("C", "i").parallel("C.local", "j_c")
    assert heads(state) == ["parallel i in 6", "j_c in 4", "k in 8", "j in 4"]
    both = LoopState.initial(PRODUCT).parallel("C", "i").parallel("C", "j")
    assert heads(both)[:2] == ["parallel i in 6", "j in 4"]


def test_a_loop_that_counts_once_leaves_the_loop_inside_parallel() -> None:
    state = LoopState.initial(PRODUCT).split("C", "i", [6]).parallel("C", "i.0").parallel("C", "i.1")
    assert heads(state)[0] == "parallel i_1 in 6"


def test_neutral_elements_stand_outside_of_the_first_reduction() -> None:
    state = LoopState.initial(PRODUCT).reorder("C", ["i", "k", "j"]).vectorize("C", "j")
    assert heads(state) == ["i in 6", "vectorized j in 4", "k in 8", "vectorized j in 4"]


def test_a_guard_stands_where_it_can_be_told() -> None:
    state = LoopState.initial(PRODUCT).split("C", "i", [4]).split("C", "k", [3])
    lines = [line.strip() for line in text(state).splitlines()]
    place = lines.index("if i_0 * 4 + i_1 < 6 {")
    assert lines[place + 1] == "for j in 4 {"
    assert lines.index("if k_0 * 3 + k_1 < 8 {") == lines.index("for k_1 in 3 {") + 1
    assert text(state).count("if ") == 2


def test_no_guard_where_the_split_is_even() -> None:
    state = LoopState.initial(PRODUCT).split("C", "i", [3]).split("C", "k", [2, 2])
    assert "if " not in text(state)


@pytest.mark.slow
def test_a_window_is_computed_where_it_is_read() -> None:
    dag = ComputeDAG(conv2d_nchw_bn_relu())
    state = LoopState.initial(dag).compute_at("padding", "conv", "yy")
    assert "alloc padding: Buffer[(1, 3, 3, 8), float32]" in text(state)


@pytest.mark.slow
def test_a_stage_inside_a_stage_that_is_inside() -> None:
    dag = ComputeDAG(conv2d_nchw_bn_relu())
    state = LoopState.initial(dag)
    for name in ("bias_add", "bn_mul", "bn_add"):
        state = state.compute_inline(name)
    state = (
        state.split("relu", "k", [4]).compute_at("conv", "relu", "k.0").compute_at("padding", "conv", "rc")
    )
    found = text(state)
    assert "alloc conv: Buffer[(1, 1, 4, 6), float32]" in found
    assert "alloc padding: Buffer[(1, 1, 3, 3), float32]" in found


def test_the_largest_hint_is_an_attribute() -> None:
    dag = ComputeDAG(double_matmul(4))
    state = (
        LoopState.initial(dag)
        .pragma("C", 0, "auto_unroll_max_step$16")
        .pragma("E", 0, "auto_unroll_max_step$64")
    )
    assert lower(dag, state).attrs["auto_unroll_max_step"] == 64
    assert not lower(dag, LoopState.initial(dag)).attrs


def test_a_region_that_is_skipped_is_left_out() -> None:
    dag = ComputeDAG(double_matmul(4))
    state = LoopState.initial(dag).with_stage(LoopState.initial(dag).stage_id("C"), is_skipped=True)
    function = lower(dag, state)
    assert print_module(IRModule({GlobalVar("main"): function})).text.count("C[") == 1


def test_a_history_without_stages_is_replayed() -> None:
    state = LoopState.initial(PRODUCT).split("C", "i", [3])
    bare = state.with_fields(stages=())
    assert lower(PRODUCT, bare) == lower(PRODUCT, state)
    assert infer_bound(PRODUCT, bare) == state


def test_ranges_of_a_tile() -> None:
    state = LoopState.initial(PRODUCT).cache_write("C", "local").split("C", "i", [2])
    state = state.compute_at("C.local", "C", "i.0")
    assert "(None)" in str(state)
    found = infer_bound(PRODUCT, state)["C.local"]
    assert [loop.extent for loop in found.iters] == [2, 4, 8]


def test_failures_stand_where_their_states_are() -> None:
    state = LoopState.initial(PRODUCT)
    open_split = state.split("C", "i", [None])
    first, second, third = infer_bounds(PRODUCT, [state, open_split, state])
    assert (first, third) == (state, state)
    assert isinstance(second, UsageError)
    assert str(second) == (
        "a length of the split of loop i is not chosen: found (None,)\n"
        "help: fill in every split length before lowering"
    )


def refusal(state: LoopState) -> str:
    with pytest.raises(UsageError) as error:
        lower(state.initial_dag, state)
    return error.value.problem


def test_what_cannot_be_seen_by_its_readers_is_refused() -> None:
    dag = ComputeDAG(softmax_nm())
    state = LoopState.initial(dag).compute_at("exp", "expsum", "i")
    assert refusal(state) == "norm reads exp, which is computed inside a loop that is not around it"
    dag = ComputeDAG(running_sum())
    state = LoopState.initial(dag).compute_at("twice", "result", 0)
    assert refusal(state) == "sums reads twice, which is computed inside a loop that is not around it"


def test_results_and_reductions_stay_where_they_are() -> None:
    dag = ComputeDAG(zero_rank_compute())
    initial = LoopState.initial(dag)
    inlined = initial.with_stage(initial.stage_id("B"), compute_at=ComputeAt.INLINED)
    assert refusal(inlined) == "B is inlined; expected an operation without a reduction"
    result = initial.with_stage(initial.stage_id("C"), compute_at=ComputeAt.INLINED)
    assert refusal(result) == "C is inlined; expected that of a result as a whole"


UNSUPPORTED = [
    annotation.keyword
    for annotation in IteratorAnnotation
    if annotation.is_thread
    and annotation
    not in (IteratorAnnotation.BLOCK_X, IteratorAnnotation.THREAD_X, IteratorAnnotation.VTHREAD)
]


@pytest.mark.parametrize("axis", UNSUPPORTED)
def test_a_loop_on_another_axis_of_threads_is_refused(axis: str) -> None:
    state = LoopState.initial(PRODUCT).bind("C", "j", axis)
    with pytest.raises(UsageError, match=f"the loop j of C is bound to {axis}; expected blockIdx.x, "):
        lower(PRODUCT, state)


def test_two_loops_of_a_stage_over_threads_are_refused() -> None:
    state = LoopState.initial(PRODUCT).bind("C", "i", "threadIdx.x").bind("C", "j", "threadIdx.x")
    with pytest.raises(UsageError, match=r"loops i and j of C are bound to threadIdx.x; expected one"):
        lower(PRODUCT, state)


def test_a_bound_reduction_is_refused() -> None:
    state = LoopState.initial(PRODUCT).bind("C", "k", "threadIdx.x")
    with pytest.raises(UsageError, match=r"the loop k of C is bound to threadIdx.x, and is reduced"):
        lower(PRODUCT, state)


def test_aligned_storage_is_refused_and_what_changes_nothing_is_not() -> None:
    state = LoopState.initial(PRODUCT).cache_write("C", "local")
    assert lower(PRODUCT, state.storage_align("C.local", 0, 1, 0)) == lower(PRODUCT, state)
    with pytest.raises(UsageError, match="step 1 aligns storage to a multiple of 32 plus 1 elements"):
        lower(PRODUCT, state.storage_align("C.local", 0, 32, 1))
