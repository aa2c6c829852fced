"""Random legal histories of steps over any DAG.

Steps are proposed at random, and kept where the state accepts them and leaves every stage where its readers
find it, so that each state on the way is legal too. Split lengths need not divide extents.
"""

from collections.abc import Callable

from hypothesis import strategies as st

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import (
    ComputeAt,
    IllegalStepError,
    IteratorAnnotation,
    LoopState,
    StageKind,
    TransformStep,
)
from intarsia.native.loop_state.placement import check_placement
from intarsia.native.loop_state.relatives import consumers
from intarsia.native.loop_state.steps import (
    AnnotationStep,
    CacheReadStep,
    CacheWriteStep,
    ComputeAtStep,
    ComputeInlineStep,
    ComputeRootStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    PragmaStep,
    ReorderStep,
    RfactorStep,
    SplitStep,
    StorageAlignStep,
)
from intarsia.native.te.iter_var import IterKind

MOST_LOOPS = 10
"""Of one stage, so that nests stay shallow."""
LONGEST_UNROLLED = 8


@st.composite
def histories(
    draw: st.DrawFn, dag: ComputeDAG, max_steps: int = 12, more_proposals: "tuple[Proposal, ...]" = ()
) -> LoopState:
    """A legal state of a DAG, with all split lengths chosen.

    Without further proposals it can be lowered.
    """
    state = LoopState.initial(dag)
    computed = [place for place, stage in enumerate(state.stages) if stage.kind is StageKind.COMPUTE]
    if not computed:
        return state
    proposals = draw(st.sampled_from((0, 2, max_steps // 2, max_steps, 2 * max_steps)))
    for _ in range(proposals):
        if len(state.transform_steps) == max_steps:
            break
        propose = draw(st.sampled_from((*PROPOSALS, *more_proposals)))
        stage_id = draw(st.integers(0, len(state.stages) - 1))
        step = propose(draw, state, stage_id)
        if step is not None:
            state = _kept(state, step)
    return state


def _kept(state: LoopState, step: TransformStep) -> LoopState:
    try:
        after = state.apply(step)
        check_placement(after)
    except IllegalStepError:
        return state
    return after


Proposal = Callable[[st.DrawFn, LoopState, int], TransformStep | None]


def _loop(draw: st.DrawFn, state: LoopState, stage_id: int) -> int | None:
    count = len(state.stages[stage_id].iters)
    return draw(st.integers(0, count - 1)) if count else None


def _split(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    loop = _loop(draw, state, stage_id)
    loops = state.stages[stage_id].iters
    if loop is None or len(loops) >= MOST_LOOPS:
        return None
    lengths = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=2)))
    return SplitStep(stage_id, loop, loops[loop].extent or None, lengths, draw(st.booleans()))


def _sources(state: LoopState) -> list[int]:
    steps = enumerate(state.transform_steps)
    return [place for place, step in steps if isinstance(step, SplitStep)]


def _follow_split(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    loop, sources = _loop(draw, state, stage_id), _sources(state)
    if loop is None or not sources or len(state.stages[stage_id].iters) >= MOST_LOOPS:
        return None
    return FollowSplitStep(stage_id, loop, draw(st.sampled_from(sources)), draw(st.integers(1, 3)))


def _follow_fused_split(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    loop, sources = _loop(draw, state, stage_id), _sources(state)
    if loop is None or not sources or len(state.stages[stage_id].iters) >= MOST_LOOPS:
        return None
    chosen = tuple(draw(st.lists(st.sampled_from(sources), min_size=1, max_size=2)))
    return FollowFusedSplitStep(stage_id, loop, chosen, 0, draw(st.booleans()))


def _fuse(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    begin = _loop(draw, state, stage_id)
    loops = state.stages[stage_id].iters
    if begin is None:
        return FuseStep(stage_id, ())
    end = draw(st.integers(begin, min(begin + 2, len(loops) - 1)))
    return FuseStep(stage_id, tuple(range(begin, end + 1)))


def _reorder(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    count = len(state.stages[stage_id].iters)
    return ReorderStep(stage_id, tuple(draw(st.permutations(range(count))))) if count > 1 else None


def _annotate(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    """Vectorized innermost loops, short unrolled ones, and one parallel one of a stage of its own."""
    stage, loop = state.stages[stage_id], _loop(draw, state, stage_id)
    if loop is None:
        return None
    kinds = (IteratorAnnotation.UNROLL, IteratorAnnotation.VECTORIZE, IteratorAnnotation.PARALLEL)
    kind, extent = draw(st.sampled_from(kinds)), stage.iters[loop].extent
    has_parallel = any(each.annotation is IteratorAnnotation.PARALLEL for each in stage.iters)
    is_last = loop == len(stage.iters) - 1 and (stage_id, loop) not in state.attach_map.attached
    allowed = {
        IteratorAnnotation.UNROLL: extent is not None and extent <= LONGEST_UNROLLED,
        IteratorAnnotation.VECTORIZE: is_last and extent is not None,
        IteratorAnnotation.PARALLEL: stage.compute_at is ComputeAt.ROOT and not has_parallel,
    }
    return AnnotationStep(stage_id, loop, kind) if allowed[kind] else None


def _pragma(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    """At the outermost loop, if there is one: without, the hint is in the state and not in Python code."""
    if not state.stages[stage_id].iters:
        return None
    number = draw(st.sampled_from((0, 16, 64)))
    return PragmaStep(stage_id, 0, f"auto_unroll_max_step${number}")


def align_storage(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    loop = _loop(draw, state, stage_id)
    return None if loop is None else StorageAlignStep(stage_id, loop, 8, draw(st.integers(0, 3)))


def _compute_at(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    """Mostly inside a loop of a reader, or of where a reader stands."""
    targets = sorted(consumers(state, stage_id))
    targets += [state.attach_map.positions[each][0] for each in targets if each in state.attach_map.positions]
    if not targets:
        return None
    target = draw(st.sampled_from(targets))
    loop = _loop(draw, state, target)
    return None if loop is None else ComputeAtStep(stage_id, target, loop)


def _compute_inline(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    return ComputeInlineStep(stage_id)


def _compute_root(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    return ComputeRootStep(stage_id) if stage_id in state.attach_map.positions else None


def _cache_read(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    dag = state.current_dag
    readers = [dag.op_ids[each] for each in dag.readers[state.stages[stage_id].op]]
    if not readers or len(dag.ops) > 2 * len(state.initial_dag.ops):
        return None
    chosen = draw(st.sets(st.sampled_from(readers), min_size=1))
    return CacheReadStep(stage_id, draw(st.sampled_from(("local", "shared"))), tuple(sorted(chosen)))


def _cache_write(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    if len(state.current_dag.ops) > 2 * len(state.initial_dag.ops):
        return None
    return CacheWriteStep(stage_id, "local")


def _rfactor(draw: st.DrawFn, state: LoopState, stage_id: int) -> TransformStep | None:
    """Of any reduction loop; the state refuses where spatial loops were changed."""
    loops = state.stages[stage_id].iters
    reductions = [place for place, loop in enumerate(loops) if loop.kind is IterKind.REDUCTION]
    if not reductions or len(state.current_dag.ops) > 2 * len(state.initial_dag.ops):
        return None
    spatial = sum(loop.kind is IterKind.SPATIAL for loop in loops)
    return RfactorStep(stage_id, draw(st.sampled_from(reductions)), draw(st.integers(0, spatial)))


PROPOSALS: tuple[Proposal, ...] = (
    *(_split, _split, _split, _follow_split, _follow_fused_split, _fuse, _reorder, _annotate, _annotate),
    *(_pragma, _compute_at, _compute_at, _compute_at, _compute_inline, _compute_root),
    *(_cache_read, _cache_write, _cache_write, _rfactor, _rfactor),
)
"""Kinds of steps, those that matter most several times."""
