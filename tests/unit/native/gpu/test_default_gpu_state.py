"""Schedules without search: every workload as kernels, on each level of proof that needs no GPU."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.gpu_on_cpu.cpu_kernels import Array
from tests.gpu_on_cpu.kernel_checks import (
    assert_close,
    check_kernels,
    interpreted,
    on_this_cpu,
    whole_numbers,
)
from tests.native_workloads import WORKLOADS, Tensors, conv2d_nchw_bn_relu, matmul, softmax_nm
from tests.properties.lowering_programs import HARD
from tests.tir_checks import in_module

from intarsia.ir import PrimFunc
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import (
    Allocate,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
    Block,
    For,
    IfThenElse,
    MemoryScope,
    Statement,
)
from intarsia.native.dag import ComputeDAG
from intarsia.native.gpu.default_gpu_state import default_gpu_state, lower_to_kernels
from intarsia.native.lowering import lower_naive
from intarsia.native.tir.rewriting import block, flat, with_body
from intarsia.support.errors import ExecutionError

DAGS = WORKLOADS | HARD


def kernels_of(name: str) -> tuple[ComputeDAG, PrimFunc]:
    dag = ComputeDAG(DAGS[name]())
    return dag, lower_to_kernels(dag, default_gpu_state(dag))


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("name", sorted(DAGS))
def test_a_workload_computes_the_same_in_kernels(name: str) -> None:
    check_kernels(*kernels_of(name))


def shared_buffers(function: PrimFunc) -> set[str]:
    allocated = (visit.statement for visit in walk(function.body) if isinstance(visit.statement, Allocate))
    return {each.buffer.name for each in allocated if each.buffer.scope is MemoryScope.SHARED}


def kernel_count(function: PrimFunc) -> int:
    return str(in_module(function)).count("for block ")


def test_a_convolution_with_its_epilogue_is_one_kernel_over_shared_tiles() -> None:
    dag = ComputeDAG(conv2d_nchw_bn_relu())
    function = lower_to_kernels(dag, default_gpu_state(dag))
    assert kernel_count(function) == 1
    assert shared_buffers(function) == {"padding", "kernel.shared"}


def test_a_softmax_is_one_kernel() -> None:
    dag = ComputeDAG(softmax_nm())
    assert kernel_count(lower_to_kernels(dag, default_gpu_state(dag))) == 1


def test_a_long_reduction_is_shared_by_the_threads_of_a_block() -> None:
    dag = ComputeDAG(softmax_nm(3, 200))
    function = lower_to_kernels(dag, default_gpu_state(dag))
    assert any(".rf" in name for name in shared_buffers(function))
    check_kernels(dag, function)


@pytest.mark.parametrize("shape", [(1, 1, 1), (65, 3, 33), (64, 130, 20), (100, 100, 7)])
def test_a_ragged_product_computes_the_same(shape: tuple[int, int, int]) -> None:
    dag = ComputeDAG(matmul(*shape))
    function, inputs = lower_to_kernels(dag, default_gpu_state(dag)), whole_numbers(dag)
    expected = {"C": inputs["A"] @ inputs["B"]}
    for is_descending in (False, True):
        assert_close(on_this_cpu(function, inputs, is_descending=is_descending), expected)


def with_each_fault(function: PrimFunc) -> Iterator[PrimFunc]:
    """The function without each of its barriers, waits, and ends of groups, or waiting for fewer groups."""
    for kind in (Barrier, AsyncWait, AsyncCommit):
        count = sum(isinstance(visit.statement, kind) for visit in walk(function.body))
        for number in range(count):
            yield replace(function, body=changed(function.body, kind, [number], lambda _: Block(())))
    waits = sum(isinstance(visit.statement, AsyncWait) for visit in walk(function.body))
    for number in range(waits):
        yield replace(function, body=changed(function.body, AsyncWait, [number], _later))


def _later(wait: AsyncWait) -> Statement:
    return AsyncWait(wait.pending + 1)


def changed(
    statement: Statement, kind: type[Any], left: list[int], change: Callable[[Any], Statement]
) -> Statement:
    """The statement with the one of a kind changed that `left` others stand before."""

    def inside(inner: Statement) -> Statement:
        return changed(inner, kind, left, change)

    match statement:
        case _ if isinstance(statement, kind):
            left[0] -= 1
            return change(statement) if left[0] == -1 else statement
        case Block():
            return block([inside(inner) for inner in flat(statement)])
        case For() | Allocate():
            return with_body(statement, inside(statement.body))
        case IfThenElse(otherwise=otherwise):
            then = inside(statement.then)
            return IfThenElse(statement.cond, then, None if otherwise is None else inside(otherwise))
        case _:
            return statement


# Products of several steps, so that shared tiles are filled again; rows over several threads.
WAITING: dict[str, Callable[[], Tensors]] = {
    "product": lambda: matmul(40, 36, 50),
    "convolution": conv2d_nchw_bn_relu,
    "rows": lambda: softmax_nm(3, 200),
}


@pytest.mark.parametrize("tiles", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(WAITING))
def test_every_planted_missing_barrier_and_wait_is_found(name: str, tiles: int) -> None:
    dag = ComputeDAG(WAITING[name]())
    function, inputs = lower_to_kernels(dag, default_gpu_state(dag), tiles), whole_numbers(dag)
    expected = interpreted(lower_naive(dag.outputs), inputs)
    faulty = list(with_each_fault(function))
    assert faulty
    assert has_copies(function) == (tiles > 1 and name != "rows")
    for candidate in faulty:
        with pytest.raises(ExecutionError, match="race for element"):
            interpreted(candidate, inputs)
        assert is_wrong(candidate, inputs, expected)


def has_copies(function: PrimFunc) -> bool:
    return any(isinstance(visit.statement, AsyncCopy) for visit in walk(function.body))


def is_wrong(function: PrimFunc, inputs: dict[str, Array], expected: dict[str, Array]) -> bool:
    """Whether the LLVM IR of kernels computes something else, in one of the orders of threads."""
    for is_descending in (False, True):
        try:
            assert_close(on_this_cpu(function, inputs, is_descending=is_descending), expected)
        except AssertionError:
            return True
    return False
