"""Statements of one GPU thread as LLVM instructions."""

from __future__ import annotations

from math import prod

from intarsia.ir.prim_func import Allocate, Barrier, For, ForKind, MemoryScope, Statement
from intarsia.native.emission.statement import Statements
from intarsia.native.emission.types import stored_bytes

BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
"""Intrinsic of a barrier of all threads of a block; its argument is the number of the barrier."""
_STACK_ALIGNMENT = 16


class KernelStatements(Statements):
    """Emits the statements of a thread; loops over blocks and threads have their counters already."""

    __slots__ = ()

    def emit(self, statement: Statement) -> None:
        """Emit a statement with its nested statements."""
        match statement:
            case Barrier():
                self._barrier()
            case For(kind=ForKind.BLOCK | ForKind.THREAD):
                self.emit(statement.body)
            case Allocate(buffer=buffer) if buffer.scope is MemoryScope.SHARED:
                self.emit(statement.body)
            case _:
                Statements.emit(self, statement)

    def _barrier(self) -> None:
        state = self.state
        state.builder.declare("void", BARRIER, "i32 0")
        state.builder.do(f"call void @{BARRIER}(i32 0)")
        # Other threads may have written what was loaded before: no load is reused across the barrier.
        for name in state.memory:
            state.versions[name] = state.versions.get(name, 0) + 1

    def _space(self, statement: Allocate) -> str:
        """Return the address of a thread's memory for a buffer: local memory, however large."""
        state, buffer = self.state, statement.buffer
        size = max(1, prod(buffer.shape)) * stored_bytes(buffer.dtype) * max(1, state.lanes)
        key = (id(statement), state.lanes)
        if key not in state.allocas:
            state.allocas[key] = state.builder.fresh("stack")
            space = f"alloca [{size} x i8], align {_STACK_ALIGNMENT}"
            state.root.before.append(f"  {state.allocas[key]} = {space}")
        return state.allocas[key]
