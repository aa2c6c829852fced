from collections.abc import Callable

import pytest
from tests.each_case import each_case
from tests.native_workloads import conv2d_nchw_bn_relu, layer_norm, matmul, zero_rank_compute

from intarsia.ir import DType
from intarsia.ir.prim_func import Buffer, For, Load, LoopVar, Store
from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import IllegalStepError, IteratorAnnotation, LoopState
from intarsia.native.loop_state.placement import check_placement
from intarsia.native.loop_state.steps import (
    AnnotationStep,
    CacheReadStep,
    ComputeAtStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    PragmaStep,
    ReorderStep,
    RfactorStep,
    SplitStep,
    TransformStep,
)

MATMUL = LoopState.initial(ComputeDAG(matmul()))
SPLIT = MATMUL.split("C", "i", [2])
CACHED = MATMUL.cache_write("C", "local")
INSIDE = CACHED.compute_at("C.local", "C", "i")
CONV = LoopState.initial(ComputeDAG(conv2d_nchw_bn_relu()))
NORM = LoopState.initial(ComputeDAG(layer_norm()))


def extern() -> LoopState:
    x, y, i = te.placeholder((4,), name="X"), Buffer("Y", (4,), DType.FLOAT32), LoopVar("i")
    (out,) = te.extern([y], [x], For(i, 4, Store(y, (i,), Load(x.buffer, (i,)))), "Y")
    return LoopState.initial(ComputeDAG((x, out)))


STEPS: list[tuple[LoopState, TransformStep, str]] = [
    (
        MATMUL,
        SplitStep(7, 0, 8, (2,)),
        'step 0, ["SP", 7, 0, 8, [2], 1] on stage 7: found stage 7; there are stages 0 to 2',
    ),
    (
        SPLIT,
        SplitStep(2, 9, 8, (2,)),
        'step 1, ["SP", 2, 9, 8, [2], 1] on stage C: found loop 9; there are loops 0 to 3',
    ),
    (
        MATMUL,
        SplitStep(0, 0, 8, (2,)),
        'step 0, ["SP", 0, 0, 8, [2], 1] on stage A: found loop 0; the stage has no loops',
    ),
    (
        MATMUL,
        SplitStep(2, 0, 8, (0, 2)),
        'step 0, ["SP", 2, 0, 8, [0, 2], 1] on stage C: found lengths [0, 2]; expected lengths of at least 1',
    ),
    (
        SPLIT,
        FuseStep(2, (0, 2)),
        'step 1, ["FU", 2, [0, 2]] on stage C: found loops i.0, j; expected neighbours, outermost first',
    ),
    (
        INSIDE,
        FuseStep(3, (0, 1)),
        'step 2, ["FU", 3, [0, 1]] on stage C: stage C.local is inside loop i: only the last fused '
        "loop may have "
        "stages inside",
    ),
    (
        MATMUL,
        FuseStep(2, ()),
        'step 0, ["FU", 2, []] on stage C: fusing no loops is for a stage without loops; found i, j, k',
    ),
    (
        MATMUL,
        ReorderStep(2, (0, 1, 1)),
        'step 0, ["RE", 2, [0, 1, 1]] on stage C: found loops [0, 1, 1]; expected each of 0 to 2 once',
    ),
    (
        MATMUL.parallel("C", "i"),
        AnnotationStep(2, 0, IteratorAnnotation.UNROLL),
        'step 1, ["AN", 2, 0, 1] on stage C: loop i is already annotated parallel',
    ),
    (
        MATMUL,
        AnnotationStep(2, 2, IteratorAnnotation.VECTORIZE),
        'step 0, ["AN", 2, 2, 2] on stage C: loop k reduces, so that its iterations write the same element: '
        "expected a spatial loop for vectorize",
    ),
    (
        SPLIT,
        FollowSplitStep(2, 2, 1, 1),
        'step 1, ["FSP", 2, 2, 1, 1] on stage C: found step 1 as the split to follow; it is none, '
        "or comes later",
    ),
    (
        SPLIT,
        FollowSplitStep(2, 2, 0, 3),
        'step 1, ["FSP", 2, 2, 0, 3] on stage C: found 3 as the number of lengths; expected 1 to '
        "2, as step 0 has 1",
    ),
    (
        SPLIT,
        FollowFusedSplitStep(2, 2, (0,), 1, True),
        'step 1, ["FFSP", 2, 2, [0], 1, 1] on stage C: found level 1; step 0 has levels 0 to 0',
    ),
    (
        MATMUL,
        PragmaStep(2, 0, "unroll"),
        'step 0, ["PR", 2, 0, "unroll"] on stage C: found hint \'unroll\'; expected '
        "auto_unroll_max_step$ and a "
        "number, or debug_skip_region",
    ),
    (
        CACHED,
        ComputeAtStep(3, 2, 0),
        'step 1, ["CA", 3, 2, 0] on stage C: the stage is a result, which is computed whole: '
        "expected another stage",
    ),
    (
        CACHED,
        ComputeAtStep(2, 2, 0),
        'step 1, ["CA", 2, 2, 0] on stage C.local: target C.local is the stage itself, or inside its loops',
    ),
    (
        CACHED,
        ComputeAtStep(2, 3, 5),
        'step 1, ["CA", 2, 3, 5] on stage C.local: found loop 5; stage C has 2 loops',
    ),
    (
        CACHED,
        ComputeAtStep(2, 9, 0),
        'step 1, ["CA", 2, 9, 0] on stage C.local: found target 9; there are stages 0 to 3',
    ),
    (
        MATMUL,
        ComputeAtStep(0, 2, 0),
        'step 0, ["CA", 0, 2, 0] on stage A: the stage is given, or written as a whole; expected a '
        "computation by "
        "elements",
    ),
    (
        CONV,
        CacheReadStep(0, "shared", (3,)),
        'step 0, ["CHR", 0, "shared", [3]] on stage data: found reader 3; the stages that read '
        "data are: padding",
    ),
    (
        CONV,
        CacheReadStep(0, "shared", ()),
        'step 0, ["CHR", 0, "shared", []] on stage data: found readers []; expected one, or several once',
    ),
    (MATMUL, RfactorStep(2, 1, 0), 'step 0, ["RF", 2, 1, 0] on stage C: loop j is no reduction'),
    (
        MATMUL,
        RfactorStep(2, 2, 3),
        'step 0, ["RF", 2, 2, 3] on stage C: found place 3; expected 0 to 2',
    ),
    (
        SPLIT,
        RfactorStep(2, 3, 0),
        'step 1, ["RF", 2, 3, 0] on stage C: earlier steps changed the stage\'s spatial loops; '
        "expected reduction "
        "loops only",
    ),
    (
        MATMUL.split("C", "k", [None]),
        RfactorStep(2, 2, 0),
        'step 1, ["RF", 2, 2, 0] on stage C: the extents of the reduction loops are not known; '
        "expected all split "
        "lengths",
    ),
]


@each_case(("state", "step", "message"), STEPS)
def test_an_impossible_step_says_which_and_why(state: LoopState, step: TransformStep, message: str) -> None:
    with pytest.raises(IllegalStepError) as caught:
        state.apply(step)
    assert str(caught.value) == message
    assert caught.value.step_id == len(state.transform_steps)


ACTIONS: list[tuple[Callable[[], object], str]] = [
    (lambda: SPLIT.cache_write("C", "local"), "earlier steps changed the stage's loops"),
    (lambda: MATMUL.parallel("C", "i").cache_write("C", "local"), "earlier steps changed the stage's loops"),
    (lambda: MATMUL.cache_write("A", "local"), "the stage is given, or written as a whole"),
    (lambda: CONV.compute_inline("bn_mul").cache_write("bn_mul", "local"), "the stage is inlined"),
    (
        lambda: CONV.compute_at("bn_mul", "bn_add", "i").cache_write("bn_add", "l"),
        "bn_mul is inside the stage's",
    ),
    (lambda: MATMUL.compute_inline("C"), "the stage is a reduction"),
    (lambda: CONV.compute_inline("relu"), "the stage is a result"),
    (lambda: CONV.compute_inline("conv"), "the stage is a reduction"),
    (
        lambda: CONV.compute_at("conv", "bn_mul", 0).compute_inline("bn_mul"),
        "stages are inside its loops: conv",
    ),
    (lambda: CONV.compute_inline("bn_mul").compute_at("conv", "bn_mul", 0), "target bn_mul is inlined"),
    (
        lambda: CONV.compute_at("conv", "bn_mul", 0).compute_at("bn_mul", "conv", 0),
        "target conv is the stage itself, or inside its loops",
    ),
    (lambda: MATMUL.compute_root("B"), "the stage is given"),
    (lambda: MATMUL.storage_align("C", "i", 0, 1), "found factor 0, offset 1"),
    (
        lambda: MATMUL.compute_root("C").rfactor("C", "k", 0),
        "the extents of the reduction loops are not known",
    ),
    (lambda: MATMUL.parallel("C", "i").rfactor("C", "k", 0), "the stage's loops are annotated"),
    (lambda: extern().compute_inline("Y"), "the stage is given, or written as a whole"),
    (lambda: extern().cache_read("X", "shared", ["Y"]), "reader Y is written by a statement of its own"),
    (lambda: extern().fuse("Y", []), "no computation by elements"),
    (lambda: LoopState.initial(ComputeDAG(zero_rank_compute())).fuse("C", []).fuse("C", []), "found"),
    (lambda: MATMUL.pragma("C", 3, "auto_unroll_max_step$16"), "found loop 3"),
]


@each_case(("action", "message"), ACTIONS)
def test_an_impossible_action_is_refused(action: Callable[[], object], message: str) -> None:
    with pytest.raises(IllegalStepError, match=message):
        action()


def test_a_stage_without_loops_takes_a_hint() -> None:
    state = LoopState.initial(ComputeDAG(zero_rank_compute())).pragma("C", 0, "auto_unroll_max_step$16")
    assert state["C"].auto_unroll_max_step == 16


def test_each_reader_must_find_the_values() -> None:
    inside = NORM.compute_at("centred", "squares", "i")
    with pytest.raises(IllegalStepError) as caught:
        check_placement(inside)
    assert str(caught.value) == (
        "step 0: stage centred is inside loop i of stage squares, and read outside of it by layer_norm\n"
        "help: compute it at a loop around all that read it, or those inside the loop too"
    )
    assert (caught.value.step_id, caught.value.stage_name) == (0, "centred")
    check_placement(NORM.compute_at("squares", "layer_norm", "i").compute_at("centred", "layer_norm", "i"))
    check_placement(NORM.compute_at("centred", "layer_norm", "i").compute_at("squares", "layer_norm", "j"))
    with pytest.raises(IllegalStepError, match="step 1: stage centred is inside loop j"):
        check_placement(
            NORM.compute_at("squares", "layer_norm", "i").compute_at("centred", "layer_norm", "j")
        )


def test_readers_are_looked_for_through_inlined_stages() -> None:
    inlined = CONV.compute_inline("bias_add").compute_inline("bn_mul").compute_at("conv", "bn_add", "k")
    check_placement(inlined)
    with pytest.raises(
        IllegalStepError, match="conv is inside loop k of stage bn_add, and read outside of it by"
    ):
        check_placement(inlined.compute_root("bn_mul"))
