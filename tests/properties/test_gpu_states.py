"""Whatever loops a schedule binds to blocks and threads, its kernels compute the same, without races."""

from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.gpu_on_cpu.kernel_checks import check_kernels
from tests.native_workloads import (
    WORKLOADS,
    Tensors,
    conv2d_nchw_bn_relu,
    depthwise_conv2d,
    layer_norm,
    matmul,
    softmax_nm,
)
from tests.properties.lowering_programs import HARD
from tests.properties.random_histories import histories

from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu import product_schedule, schedule_stages
from intarsia.native.gpu.default_gpu_state import default_gpu_state, lower_to_kernels
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation, LoopState, StageKind
from intarsia.native.te.iter_var import IterKind
from intarsia.support.errors import UsageError

DAGS = {name: ComputeDAG(make()) for name, make in (WORKLOADS | HARD).items()}


@st.composite
def gpu_states(draw: st.DrawFn) -> LoopState:
    """A random history, with random spatial loops bound to blocks, threads and virtual threads."""
    name = draw(st.sampled_from(sorted(DAGS)))
    state = draw(histories(DAGS[name], max_steps=draw(st.sampled_from((6, 16)))))
    for stage_id, stage in enumerate(state.stages):
        if stage.kind is StageKind.PLACEHOLDER or stage.compute_at is ComputeAt.INLINED:
            continue
        free = [
            position
            for position, loop in enumerate(stage.iters)
            if loop.kind is IterKind.SPATIAL and loop.annotation is IteratorAnnotation.NONE
        ]
        chance: int = draw(st.integers(0, 3))
        if chance and stage.compute_at is ComputeAt.ROOT and free and free[0] == 0:
            state = state.bind(stage_id, free.pop(0), "blockIdx.x")
        for axis in ("threadIdx.x", "vthread"):
            chance = draw(st.integers(0, 3))
            if chance and free:
                loop: int = draw(st.sampled_from(free))
                free.remove(loop)
                state = state.bind(stage_id, loop, axis)
    return state


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(gpu_states(), st.integers(0, 3), st.integers(1, 3), st.integers(0, 9))
def test_kernels_of_random_schedules_compute_the_same(
    state: LoopState, seed: int, in_turn: int, turn: int
) -> None:
    try:
        function = lower_to_kernels(state.initial_dag, state, in_turn)
    except UsageError:
        assume(False)
    check_kernels(state.initial_dag, function, seed, is_compiled=turn == 0)


SIZES = st.integers(1, 40)
COMPUTATIONS = st.one_of(
    st.builds(matmul, SIZES, SIZES, SIZES),
    st.builds(softmax_nm, st.integers(1, 5), st.integers(1, 90)),
    st.builds(
        conv2d_nchw_bn_relu,
        *(st.just(1), st.integers(3, 9), st.integers(3, 9), st.integers(1, 9), st.integers(1, 9)),
        *(st.sampled_from((1, 3)), st.integers(1, 2), st.integers(0, 1)),
    ),
    st.builds(depthwise_conv2d, st.integers(1, 5), st.integers(3, 9), st.integers(1, 2)),
    st.builds(layer_norm, st.integers(1, 5), st.integers(1, 90)),
)
TILES = st.fixed_dictionaries(
    {
        "_EDGES": st.lists(st.sampled_from((2, 3, 4, 8, 16)), min_size=1, max_size=2).map(tuple),
        "_ENOUGH_BLOCKS": st.integers(1, 8),
        "_REGISTER_EDGE": st.integers(1, 4),
        "_STEP": st.integers(1, 8),
    }
)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    COMPUTATIONS, TILES, st.sampled_from((2, 4, 32)), st.integers(2, 64), st.integers(1, 4), st.integers(0, 9)
)
def test_kernels_of_the_rules_compute_the_same_for_any_tile(
    tensors: Tensors, tiles: dict[str, Any], warp: int, long: int, in_turn: int, turn: int
) -> None:
    dag = ComputeDAG(tensors)
    stages = patch.multiple(schedule_stages, WARP=warp, LONG=long)
    with patch.multiple(product_schedule, **tiles), stages:
        function = lower_to_kernels(dag, default_gpu_state(dag), in_turn)
    check_kernels(dag, function, 0, is_compiled=turn == 0)
