"""StorageRewrite: buffers that are not needed at the same time share memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import assert_never

from intarsia.ir import DType, IRModule, PrimFunc, with_prim_func_fields
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import (
    DEEPEST,
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    KernelStatement,
    Literal,
    MemoryScope,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.tir.buffer_lifetime import BufferLifetime, lifetimes
from intarsia.native.tir.rewriting import (
    Access,
    Indices,
    Replacement,
    block_like,
    flat,
    has_blocks,
    with_body,
    with_branches,
)
from intarsia.transform import PassContext, PrimFuncPass, register_pass


@register_pass
@dataclass(frozen=True)
class StorageRewrite(PrimFuncPass):
    """Lets buffers of one type share memory where their lifetimes do not meet, and allocates it early.

    Allocations move out of serial loops and guards, up to the body of the loop around that is not serial, or
    of the function: nothing reads what it has not written, so the contents of the last iteration do not
    matter. Buffers of different shapes share an array of one dimension. What only one thread uses gets the
    scope `thread`; registers stay as they are.

    Before:
        def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {
          for parallel i in 4 {
            alloc t: Buffer[(8,), float32] {
              for j in 8 {
                t[j] = x[i, j] * 2.0f32;
              }
              for j in 8 {
                y[i, j] = t[7 - j];
              }
            }
            alloc u: Buffer[(8,), float32] {
              for j in 8 {
                u[j] = exp(y[i, j]);
              }
              for j in 8 {
                y[i, j] = u[7 - j];
              }
            }
          }
        }
    After:
        def prim @f(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) {
          for parallel i in 4 {
            alloc t: Buffer[(8,), float32, thread] {
              for j in 8 {
                t[j] = x[i, j] * 2.0f32;
              }
              for j in 8 {
                y[i, j] = t[7 - j];
              }
              for j in 8 {
                t[j] = exp(y[i, j]);
              }
              for j in 8 {
                y[i, j] = t[7 - j];
              }
            }
          }
        }
    """

    def transform_prim_func(self, function: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
        """Return the loop function with shared memory; unchanged if its statements would nest too deeply."""
        if has_blocks(function):
            return function  # it may not move accesses across barriers
        if not any(isinstance(visit.statement, Allocate) for visit in walk(function.body)):
            return function
        body = _with_shared_memory(function.body)
        if max((visit.depth for visit in walk(body)), default=0) >= DEEPEST:
            return function
        return with_prim_func_fields(function, body=body)


@dataclass(slots=True)
class _Slot:
    """Memory that buffers use one after the other.

    Attributes:
        buffers: Buffers that share the memory, in the order of their live ranges.
        end: Last step at which a buffer uses the memory so far.
        scope: Memory scope of the slot.
    """

    buffers: list[Buffer] = field(default_factory=list)
    end: int = -1
    scope: MemoryScope = MemoryScope.THREAD

    @property
    def memory(self) -> Buffer:
        """The buffer that holds all of them: like the first if all have its shape, else flat."""
        first = self.buffers[0]
        if all(buffer.shape == first.shape for buffer in self.buffers):
            return replace(first, scope=self.scope)
        size = max(prod(buffer.shape) for buffer in self.buffers)
        return replace(first, shape=(size,), scope=self.scope)

    def access(self, buffer: Buffer) -> Access:
        """Return the mapping from indices of a buffer to the shared memory."""
        memory = self.memory
        return lambda indices: (
            memory,
            indices if memory.shape == buffer.shape else _flat_index(buffer, indices),
        )


def _flat_index(buffer: Buffer, indices: Indices) -> Indices:
    """Return the position of an element in a flat array."""
    offset: Scalar = Literal(0, DType.INT64)
    for position, index in enumerate(indices):
        stride = prod(buffer.shape[position + 1 :])
        term = index if stride == 1 else Arith(ArithOp.MUL, (index, Literal(stride, DType.INT64)))
        offset = Arith(ArithOp.ADD, (offset, term)) if position else term
    return (offset,)


def _with_shared_memory(body: Statement) -> Statement:
    """Return the body of a function or of a loop that is not serial, with its memory allocated first."""
    slots = _assign_slots(lifetimes(body))
    accesses = {buffer: slot.access(buffer) for slot in slots for buffer in slot.buffers}
    inside = block_like(body, _without_allocations(body, frozenset(accesses)))
    inside = Replacement(accesses=accesses).statement(inside)
    for slot in reversed(slots):
        inside = Allocate(slot.memory, inside)
    return inside


def _assign_slots(lifetimes: list[BufferLifetime]) -> list[_Slot]:
    """Assign buffers to memory slots, in the order in which they become live: linear scan."""
    slots: list[_Slot] = []
    # First fit in the order of begins takes no more slots than buffers of a scope and type are live at once.
    for life in sorted(lifetimes, key=lambda life: life.begin):
        scope = MemoryScope.GLOBAL if life.is_shared else MemoryScope.THREAD
        fitting = (
            slot
            for slot in slots
            if slot.end < life.begin and slot.scope is scope and slot.buffers[0].dtype is life.buffer.dtype
        )
        slot = next(fitting, None)
        if slot is None:
            slot = _Slot(scope=scope)
            slots.append(slot)
        slot.buffers.append(life.buffer)
        slot.end = life.end
    return slots


def _without_allocations(statement: Statement, moved: frozenset[Buffer]) -> list[Statement]:
    """Return the statement without allocations that move; loops that are not serial keep theirs inside."""
    match statement:
        case Store() | KernelStatement():
            return [statement]
        case Block():
            return [after for inner in flat(statement) for after in _without_allocations(inner, moved)]
        case For():
            if statement.kind is ForKind.VECTORIZED:
                return [statement]  # what is allocated there has an element for each lane
            if statement.kind is not ForKind.SERIAL:
                return [with_body(statement, _with_shared_memory(statement.body))]
            return [with_body(statement, _body_without_allocations(statement.body, moved))]
        case Allocate():
            if statement.buffer in moved:
                return _without_allocations(statement.body, moved)
            return [with_body(statement, _body_without_allocations(statement.body, moved))]
        case IfThenElse():
            other = statement.otherwise
            return [
                with_branches(
                    statement,
                    _body_without_allocations(statement.then, moved),
                    None if other is None else _body_without_allocations(other, moved),
                )
            ]
        case _:
            assert_never(statement)


def _body_without_allocations(statement: Statement, moved: frozenset[Buffer]) -> Statement:
    return block_like(statement, _without_allocations(statement, moved))
