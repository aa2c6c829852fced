"""The schedule of a DAG on a GPU, without search, and its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from intarsia.ir import GlobalVar, IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.prim_func import Allocate, Block, For, ForKind, Statement
from intarsia.native.dag import AccessAnalyzer, ComputeDAG
from intarsia.native.gpu.kernel_list import list_kernels
from intarsia.native.gpu.product_schedule import inputs_of_product, product
from intarsia.native.gpu.schedule_stages import across_threads, in_rows, per_element
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower
from intarsia.native.lowering.thread_sharing import as_kernel
from intarsia.native.schedule.inlining import with_inlined
from intarsia.native.schedule.row_schedule import row_groups, shared_depth
from intarsia.native.te import ComputeOp
from intarsia.native.tir import Simplify, UnrollLoop
from intarsia.native.tir.rewriting import block, flat
from intarsia.support.errors import CompileError, UsageError
from intarsia.transform import Sequential


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


def lower_to_kernels(dag: ComputeDAG, state: LoopState) -> PrimFunc:
    """Return the loop function of a state as kernels only; what no rule has bound runs in one thread.

    Raises:
        UsageError: The state cannot be lowered.
    """
    function = lower(dag, state)
    attrs = function.attrs.updated(contract=True)
    kernels = with_prim_func_fields(function, body=_as_kernels(function.body), attrs=attrs)
    module = Sequential([Simplify(), UnrollLoop(), Simplify()])(IRModule({GlobalVar("main"): kernels}))
    return module.prim_func("main")


def _as_kernels(statement: Statement) -> Statement:
    match statement:
        case Block():
            return block([_as_kernels(inner) for inner in flat(statement)])
        case Allocate():
            return Allocate(statement.buffer, _as_kernels(statement.body))
        case For(kind=ForKind.BLOCK):
            return statement
        case _:
            return as_kernel(statement)


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
