"""The schedule of a DAG on a GPU, without search, and its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from intarsia.ir import GlobalVar, IRModule, PrimFunc, with_prim_func_fields
from intarsia.native.dag import AccessAnalyzer, ComputeDAG
from intarsia.native.gpu.attention import with_attention
from intarsia.native.gpu.copies_ahead import with_copies_ahead
from intarsia.native.gpu.kernel_list import DECLARED_SHARED_BYTES, list_kernels
from intarsia.native.gpu.needless_barriers import without_needless_barriers
from intarsia.native.gpu.padded_tiles import with_padded_tiles
from intarsia.native.gpu.product_schedule import inputs_of_product, product
from intarsia.native.gpu.schedule_stages import across_threads, in_rows, over_blocks, per_element
from intarsia.native.gpu.static_cost import FACTS, static_cost
from intarsia.native.gpu.tensor_core_product import TILINGS
from intarsia.native.gpu.tensor_cores import with_tensor_cores
from intarsia.native.gpu.tensorised import tensorised_tiling
from intarsia.native.gpu.virtual_threads import with_virtual_threads_unrolled
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower
from intarsia.native.lowering.thread_sharing import as_kernels
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.row_schedule import row_groups, shared_depth
from intarsia.native.te import ComputeOp
from intarsia.native.tir import Simplify, UnrollLoop
from intarsia.native.tir.rewriting import has_blocks
from intarsia.support.errors import CompileError, UsageError
from intarsia.transform import Sequential

_OLDEST: Final = "sm_80"
"""Model of GPU whose peaks choose tiles."""
TILES: Final = 2
"""Number of shared tiles in turn: threads compute with one while the other is filled."""


def default_gpu_state(dag: ComputeDAG) -> LoopState:
    """Return the state of a DAG's loops on a GPU.

    Each group of stages takes the first rule that can be lowered: products in tiles, rows in one kernel,
    reductions across threads, a thread for each element.

    Args:
        dag: DAG before any step.
    """
    filled = _padded_factors(dag)
    state = with_inlined(LoopState.initial(dag), kept=filled)
    for target, members in row_groups(state, frozenset(filled)).items():
        state = _with_group(state, target, members, tuple(filled))
    for name in filled:
        if 0 not in state[name].op.buffers[0].shape and not state.attach_map.positions.get(
            state.stage_id(name)
        ):
            state = per_element(state, name)
    return state


def gpu_kernels(dag: ComputeDAG, *, tf32: bool = False, is_portable: bool = False) -> PrimFunc:
    """Return the kernels of a DAG without search: those of `default_gpu_state`, attention, tensor cores.

    Products on tensor cores have the tiles of the least static cost.

    Args:
        dag: DAG before any step.
        tf32: Whether products of float32 may be computed with factors of 11 significant bits.
        is_portable: Whether nothing is used that only NVIDIA's GPUs have: neither tensor cores nor
            asynchronous copies.
    """
    dag = with_attention(dag, has_tensor_cores=not is_portable)
    if is_portable:
        return lower_to_kernels(dag, default_gpu_state(dag), tiles=1)
    changed = dict.fromkeys(with_tensor_cores(dag, tiling, tf32=tf32) for tiling in TILINGS)
    return min((lower_to_kernels(each, default_gpu_state(each)) for each in changed), key=_static_cost)


def _static_cost(function: PrimFunc) -> float:
    return sum(static_cost(kernel, FACTS[_OLDEST]) for kernel in list_kernels(function).kernels)


def lower_to_kernels(
    dag: ComputeDAG, state: LoopState, tiles: int = TILES, shared_bytes: int = DECLARED_SHARED_BYTES
) -> PrimFunc:
    """Return the loop function of a state as kernels only; what no rule has bound runs in one thread.

    Args:
        dag: DAG of the state before any step.
        state: The state; one with tensorised loops is a choice of the tiles of products on tensor cores.
        tiles: Maximum number of tiles in shared memory that are filled in turn, by asynchronous copies; 1 for
            tiles that are filled when they are needed.
        shared_bytes: Size of shared memory in bytes that these tiles may take; `MOST_SHARED_BYTES` at most.

    Raises:
        UsageError: The state cannot be lowered.
    """
    tiling = tensorised_tiling(state)
    if tiling is not None:
        changed = with_tensor_cores(dag, tiling)
        return lower_to_kernels(changed, default_gpu_state(changed), tiles)
    function = lower(dag, state)
    attrs = function.attrs.updated(contract=True)
    body = function.body if has_blocks(function) else as_kernels(function.body)
    body = with_virtual_threads_unrolled(body)
    kernels = with_prim_func_fields(function, body=body, attrs=attrs)
    module = Sequential([Simplify(), UnrollLoop(), Simplify()])(IRModule({GlobalVar("main"): kernels}))
    ahead = with_copies_ahead(module.prim_func("main"), tiles, shared_bytes)
    final = Simplify()(IRModule({GlobalVar("main"): ahead})).prim_func("main")
    return with_padded_tiles(without_needless_barriers(final))


def _padded_factors(dag: ComputeDAG) -> list[str]:
    """Return the operations without sums that only a product reads: they are computed in shared memory."""
    analyzer = AccessAnalyzer(dag)
    names = []
    for op in dag.ops:
        for factor in inputs_of_product(analyzer, op):
            is_plain = isinstance(factor, ComputeOp) and factor.combiner is None
            if is_plain and len(dag.readers[factor]) == 1 and not dag.is_output(factor):
                names.append(factor.name)
    return names


def _with_group(
    state: LoopState, target: str, members: tuple[str, ...], filled: tuple[str, ...]
) -> LoopState:
    """Schedule the stages of a group by the first rule that can be lowered."""
    if any(0 in buffer.shape for name in (target, *members) for buffer in state[name].op.buffers):
        return state  # nothing is computed
    for rule in _rules(state, target, members, filled):
        try:
            after = rule()
            list_kernels(lower_to_kernels(after.initial_dag, after))
        except (UsageError, CompileError):
            continue
        return after
    for name in members:
        state = _with_group(state, name, (), filled)
    return _with_group(state, target, (), filled) if members else state


def _rules(
    state: LoopState, target: str, members: tuple[str, ...], filled: tuple[str, ...]
) -> Iterator[Callable[[], LoopState]]:
    analyzer = AccessAnalyzer(state.current_dag)
    products = [name for name in (target, *members) if inputs_of_product(analyzer, state[name].op)]
    if not members:
        if products:
            yield lambda: product(state, target, None, filled)
        yield lambda: over_blocks(state, target)
        yield lambda: across_threads(state, target)
        yield lambda: per_element(state, target)
    elif products == list(members) and _is_elementwise(state, target, members[0]):
        yield lambda: product(state, members[0], target, filled)
    elif not products:
        depth = shared_depth(state, target, members)
        if depth:
            yield lambda: in_rows(state, target, members, depth)


def _is_elementwise(state: LoopState, reader: str, name: str) -> bool:
    """Return whether a stage without sums has the shape of another one, and reads it element by element."""
    op, source = state[reader].op, state[name].op
    is_plain = isinstance(op, ComputeOp) and op.combiner is None and op.shape == source.buffers[0].shape
    return is_plain and AccessAnalyzer(state.current_dag).elementwise_match(source, op)
