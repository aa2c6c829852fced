"""Statements of one GPU thread as LLVM instructions."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Final

from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
    Buffer,
    For,
    ForKind,
    KernelStatement,
    Load,
    MemoryScope,
    Mma,
    Statement,
    Store,
)
from intarsia.ir.warp import WARP
from intarsia.native.emission.affine_index import AffineIndex, scale
from intarsia.native.emission.memory import address_of
from intarsia.native.emission.statement import Statements
from intarsia.native.emission.types import stored_bytes
from intarsia.native.gpu.warp_products import WarpProducts

BARRIER: Final = "llvm.nvvm.barrier.cta.sync.aligned.all"
"""Intrinsic of a barrier of all threads of a block; its argument is the number of the barrier."""
COPY: Final = "llvm.nvvm.cp.async"
"""Begin of the names of intrinsics of asynchronous copies."""
_STACK_ALIGNMENT: Final = 16
_WIDEST_COPY: Final = 16
"""Size in bytes of copies that need not pass through the first-level cache."""
_TILES: Final = (MemoryScope.SHARED, MemoryScope.THREAD)
_SPACES: Final = {MemoryScope.GLOBAL: 1, MemoryScope.SHARED: 3}
"""Numbers of the address spaces of LLVM."""
_MOST_FILLED: Final = 32
"""Maximum number of elements of a tile that a thread fills in a loop which ptxas may unroll.

ptxas 13.0 unrolls loops of 182 iterations, and loads what all of them read before it stores any of it: a
thread that fills 44 elements has 255 registers and spills 472 bytes, and 57 without that.
"""
_ROLLED: Final = ("!0 = !{!0, !1}", '!1 = !{!"llvm.loop.unroll.disable"}')
"""Metadata of loops that stay loops; they share it, as nothing else is said of them."""


@dataclass(slots=True)
class KernelStatements(Statements):
    """Emits the statements of a thread; loops over blocks and threads have their counters already.

    Attributes:
        threads: Number of threads of a block.
    """

    threads: int = field(kw_only=True)

    def emit(self, statement: Statement) -> None:
        """Emit a statement with its nested statements."""
        match statement:
            case Barrier():
                self._barrier()
            case AsyncCopy():
                self._copy(statement)
            case Mma():
                WarpProducts(self.state, self.scalars).emit(statement)
                buffer = statement.sums.buffer.name
                self.state.versions[buffer] = self.state.versions.get(buffer, 0) + 1
            case AsyncCommit():
                self._call(f"{COPY}.commit.group", "")
            case AsyncWait():
                self._call(f"{COPY}.wait.group", f"i32 {statement.pending}")
                self._forget_loads()
            case For(kind=ForKind.BLOCK | ForKind.THREAD):
                self.emit(statement.body)
            case Allocate(buffer=buffer) if buffer.scope is MemoryScope.SHARED:
                self.emit(statement.body)
            case _:
                Statements.emit(self, statement)

    def _loop_note(self, loop: For) -> str:
        """Return metadata that keeps ptxas from unrolling a loop where it would need too many registers.

        Such are loops that fill much of a tile, and all loops of blocks with less than a warp: where threads
        are few, ptxas takes all registers that there are.
        """
        is_rolled = self.threads < WARP or _filled_elements(loop) > _MOST_FILLED
        if loop.count is not None or not is_rolled:
            return ""
        self.state.builder.module.metadata.update(dict.fromkeys(_ROLLED))
        return ", !llvm.loop !0"

    def _barrier(self) -> None:
        self._call(BARRIER, "i32 0")
        self._forget_loads()

    def _copy(self, copy: AsyncCopy) -> None:
        cache = "cg" if copy.size == _WIDEST_COPY else "ca"
        name = f"{COPY}.{cache}.shared.global.{copy.size}"
        arguments = f"{self._pointer(copy.target)}, {self._pointer(copy.source)}"
        if copy.valid is None:
            self._call(name, arguments)
            return
        valid = self.scalars.number(copy.valid)
        assert isinstance(valid, AffineIndex), "no lanes are around a copy"
        size = self.state.symbols.sum(scale(valid, copy.size // copy.width))
        read = self.state.builder.pure(f"trunc i64 {size} to i32")
        self._call(f"{name}.s", f"{arguments}, i32 {read}")

    def _pointer(self, element: Load) -> str:
        """Return the address of an element in the address space of its memory, as an argument."""
        state, buffer = self.state, element.buffer
        offset = self.scalars.flat(element)
        assert isinstance(offset, AffineIndex), "no lanes are around a copy"
        address, _ = address_of(state, state.memory[buffer.name], offset)
        kind = f"ptr addrspace({_SPACES[buffer.scope]})"
        return f"{kind} {state.builder.pure(f'addrspacecast ptr {address} to {kind}')}"

    def _call(self, name: str, arguments: str) -> None:
        self.state.builder.declare("void", name, arguments)
        self.state.builder.do(f"call void @{name}({arguments})")

    def _forget_loads(self) -> None:
        """Reuse no load after this point: others may have written what was loaded before."""
        state = self.state
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


def _filled_elements(loop: For) -> int:
    """Return how many elements of tiles and arrays a loop stores that only copies; 0 if it computes."""
    count = 0
    extents: list[int] = []
    for visit in walk(loop):
        match visit.statement, visit.event:
            case For(extent=extent), Event.ENTER:
                extents.append(extent)
            case For(), Event.LEAVE:
                extents.pop()
            case Store() as store, Event.ENTER:
                if store.buffer.scope not in _TILES or store.buffer in _loaded(store):
                    return 0
                count += prod(extents)
            case KernelStatement(), Event.ENTER:
                return 0
    return count


def _loaded(store: Store) -> set[Buffer]:
    parts = (part for root in scalars(store) for part in inner_scalars(root))
    return {part.buffer for part in parts if isinstance(part, Load)}
