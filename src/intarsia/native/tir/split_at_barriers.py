"""SplitAtBarriers: GPU kernels as loops of a CPU, which compute the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from intarsia.ir import IRModule, PrimFunc
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    KernelStatement,
    LoopVar,
    MemoryScope,
    Statement,
    Store,
)
from intarsia.native.tir.plain_threads import PlainThreads
from intarsia.native.tir.rewriting import (
    Indices,
    Replacement,
    block,
    flat,
    with_kernels,
)
from intarsia.support.free_names import NameSupply
from intarsia.transform import PassContext, PrimFuncPass, register_pass


@register_pass
@dataclass(frozen=True)
class SplitAtBarriers(PrimFuncPass):
    """Turns loops over blocks into parallel ones, and each loop over threads into one for every barrier.

    A loop over threads is cut at its barriers: every part runs for all threads before the next one begins, as
    a barrier demands. A buffer of a thread that lives across a barrier gets a dimension more, one element for
    each thread. Shared memory is memory of the block's iteration. An asynchronous copy is done where it
    starts, and each thread computes its part of a warp's product by itself. The results are the same, bit for
    bit but for such products, unless threads race.

    Before:
        def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {
          for block b in 4 {
            alloc row: Buffer[(8,), float32, shared] {
              for thread t in 8 {
                row[t] = x[b, t];
                barrier;
                y[b, t] = row[7 - t];
              }
            }
          }
        }
    After:
        def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {
          for parallel b in 4 {
            alloc row: Buffer[(8,), float32] {
              for t in 8 {
                row[t] = x[b, t];
              }
              for t in 8 {
                y[b, t] = row[7 - t];
              }
            }
          }
        }
    """

    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """Return the loop function without blocks, threads and barriers."""
        return with_kernels(function, _without_blocks)


def _without_blocks(blocks: For) -> Statement:
    """Return a kernel as a parallel loop, with its threads split."""
    return For(blocks.var, blocks.extent, _split_kernel(blocks.body), ForKind.PARALLEL, blocks.count)


def _split_kernel(statement: Statement) -> Statement:
    """Return the body of a loop over blocks with plain allocations and split threads."""
    if isinstance(statement, Allocate):
        plain = replace(statement.buffer, scope=MemoryScope.GLOBAL)
        body = _in_buffer(statement.body, statement.buffer, plain)
        return Allocate(plain, _split_kernel(body))
    if isinstance(statement, Block):
        return block([_split_kernel(inner) for inner in flat(statement)])
    assert isinstance(statement, For), "a verified kernel has a loop over threads"
    names = NameSupply(loop.var.name for loop in _loops(statement))
    threads = PlainThreads(statement.var, LoopVar(names.fresh("step")))
    return block(_split(statement, threads.statement(statement.body)))


def _loops(statement: Statement) -> Iterator[For]:
    loops = (visit.statement for visit in walk(statement))
    return (loop for loop in loops if isinstance(loop, For))


def _split(threads: For, statement: Statement) -> list[Statement]:
    """Return the statements that run a part of a thread for all threads, without barriers."""
    if not _has_barrier(statement):
        return [For(threads.var, threads.extent, statement)] if flat(statement) else []
    match statement:
        case Barrier():
            return []
        case Block():
            return _split_sequence(threads, flat(statement))
        case For():
            body = block(_split(threads, statement.body))
            return [For(statement.var, statement.extent, body, statement.kind)]
        case IfThenElse():
            otherwise = statement.otherwise
            second = None if otherwise is None else block(_split(threads, otherwise))
            return [IfThenElse(statement.cond, block(_split(threads, statement.then)), second)]
        case Allocate():
            before = statement.buffer
            wide = replace(before, shape=(threads.extent, *before.shape), scope=MemoryScope.GLOBAL)

            def element(indices: Indices) -> tuple[Buffer, Indices]:
                return wide, (threads.var, *indices)

            body = Replacement(accesses={before: element}).statement(statement.body)
            return [Allocate(wide, block(_split(threads, body)))]
        case Store() | KernelStatement():
            raise AssertionError("these hold no barrier")
        case _:
            assert_never(statement)


def _split_sequence(threads: For, statements: list[Statement]) -> list[Statement]:
    """Split statements in order: those between two barriers share a loop over threads."""
    parts: list[Statement] = []
    run: list[Statement] = []
    for statement in statements:
        if not _has_barrier(statement):
            run.append(statement)
            continue
        parts += [For(threads.var, threads.extent, block(run))] if run else []
        run = []
        parts += _split(threads, statement)
    return parts + ([For(threads.var, threads.extent, block(run))] if run else [])


def _in_buffer(statement: Statement, before: Buffer, after: Buffer) -> Statement:
    return Replacement(accesses={before: lambda indices: (after, indices)}).statement(statement)


def _has_barrier(statement: Statement) -> bool:
    return any(isinstance(visit.statement, Barrier) for visit in walk(statement))
