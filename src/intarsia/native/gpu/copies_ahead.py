"""Shared tiles that are filled some steps before they are used, by asynchronous copies.

A kernel that lowering made fills its shared tiles in each step of a loop, between two barriers, and computes
with them behind the second one:

    for k in n { barrier; fill(k); barrier; compute(k); }

With `b` tiles in turn, threads fill the tile of step `k + b - 1` while they compute with that of step `k`:

    fill(0); async commit; .. fill(b - 2); async commit;
    for k in n {
      async wait b - 2; barrier;
      if k + b - 1 < n { fill(k + b - 1); }
      async commit;
      compute(k);
    }

A group of copies is ended in each step, also where nothing is left to be filled, so that the number of
groups that a wait leaves is the same in all. The barrier of step `k` separates what was computed in step
`k - 1` from what fills its tile anew. What is no copy of memory, such as the zeros of padding, is stored at
once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod
from types import UnionType
from typing import Final

from intarsia.ir import DType, PrimFunc
from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk, written_elements
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    KernelStatement,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.warp import COPY_SIZES
from intarsia.native.gpu.kernel_list import DECLARED_SHARED_BYTES, aligned_bytes
from intarsia.native.tir.rewriting import (
    Indices,
    Replacement,
    block,
    flat,
    loop_vars,
    with_body,
    with_kernels,
)
from intarsia.native.tir.simplify_scalar import ScalarSimplifier

_ORDERED: Final = Barrier | AsyncCopy | AsyncCommit | AsyncWait
"""Statements that may not stand where threads compute: their order with copies matters."""


def with_copies_ahead(
    function: PrimFunc, buffers: int, shared_bytes: int = DECLARED_SHARED_BYTES
) -> PrimFunc:
    """Return a loop function whose kernels fill shared tiles ahead; others stay as they are.

    Args:
        function: Loop function with kernels of lowering, simplified.
        buffers: Number of tiles in turn; fewer where shared memory does not hold them. 1 changes nothing.
        shared_bytes: Size of shared memory that a block may have in bytes.
    """
    return with_kernels(function, lambda kernel: _kernel(kernel, buffers, shared_bytes))


def _kernel(kernel: For, buffers: int, shared_bytes: int) -> Statement:
    around: list[Buffer] = []
    threads = kernel.body
    while not isinstance(threads, For):
        (inner,) = flat(threads)
        if isinstance(inner, Allocate):
            around.append(inner.buffer)
            inner = inner.body
        threads = inner
    turns = _Turns(buffers, shared_bytes, around, _accessed([threads]))
    body: Statement = with_body(threads, turns.visit(threads.body, is_repeated=False))
    for buffer in reversed(around):
        body = Allocate(turns.wide.get(buffer, buffer), body)
    return with_body(kernel, body)


@dataclass(frozen=True, slots=True)
class _Accessed:
    """Numbers of reads and writes of each buffer in statements."""

    reads: dict[Buffer, int] = field(default_factory=dict)
    writes: dict[Buffer, int] = field(default_factory=dict)


def _accessed(statements: Iterable[Statement]) -> _Accessed:
    accessed = _Accessed()
    for statement in statements:
        for visit in walk(statement):
            if visit.event is Event.ENTER:
                _count(visit.statement, accessed)
    return accessed


def _count(statement: Statement, accessed: _Accessed) -> None:
    for root in scalars(statement):
        for part in inner_scalars(root):
            if isinstance(part, Load):
                accessed.reads[part.buffer] = accessed.reads.get(part.buffer, 0) + 1
    written = [statement.buffer] if isinstance(statement, Store) else []
    if isinstance(statement, KernelStatement):
        written = [element.buffer for element in written_elements(statement)]
    for buffer in written:
        accessed.writes[buffer] = accessed.writes.get(buffer, 0) + 1


@dataclass(frozen=True, slots=True)
class _Step:
    """The body of a loop that fills tiles and computes with them.

    Attributes:
        fill: Statements between the two barriers.
        compute: Statements behind the second one.
        tiles: Buffers that are filled.
        has_shared_reads: Whether filling reads shared memory.
    """

    fill: tuple[Statement, ...]
    compute: tuple[Statement, ...]
    tiles: tuple[Buffer, ...]
    has_shared_reads: bool


@dataclass(slots=True)
class _Turns:
    """The loops of one kernel.

    Attributes:
        buffers: Maximum number of tiles in turn.
        shared_bytes: Maximum size of shared memory in bytes.
        shared: Buffers in shared memory.
        all: Accesses of the kernel.
        wide: Buffers of several tiles, by that of one.
    """

    buffers: int
    shared_bytes: int
    shared: list[Buffer]
    all: _Accessed
    wide: dict[Buffer, Buffer] = field(default_factory=dict)

    def visit(self, statement: Statement, *, is_repeated: bool) -> Statement:
        """Return a statement of a thread with changed loops.

        Args:
            statement: The statement.
            is_repeated: Whether a loop of the thread is around it.
        """
        match statement:
            case Block():
                return block([self.visit(inner, is_repeated=is_repeated) for inner in flat(statement)])
            case For(kind=ForKind.SERIAL, count=None):
                step = self._step(statement)
                count = 1 if step is None else self._tile_count(step, statement.extent)
                if step is not None and count > 1:
                    return self._in_turn(statement, step, count, is_repeated=is_repeated)
                return with_body(statement, self.visit(statement.body, is_repeated=True))
            case Allocate():
                return with_body(statement, self.visit(statement.body, is_repeated=is_repeated))
            case _:
                return statement

    def _step(self, loop: For) -> _Step | None:
        """Return the parts of a loop's body if it fills tiles and computes with them, else None."""
        statements = flat(loop.body)
        barriers = [number for number, inner in enumerate(statements) if isinstance(inner, Barrier)]
        if loop.extent < 2 or len(barriers) != 2 or barriers[0]:
            return None
        fill, compute = tuple(statements[1 : barriers[1]]), tuple(statements[barriers[1] + 1 :])
        if _has_any(fill, KernelStatement) or _has_any(compute, _ORDERED):
            return None
        filled, computed = _accessed(fill), _accessed(compute)
        tiles = tuple(filled.writes)
        are_alone = all(
            tile in self.shared
            and tile not in computed.writes
            and tile not in filled.reads
            and self.all.writes.get(tile) == filled.writes.get(tile)
            and self.all.reads.get(tile) == computed.reads.get(tile)
            for tile in tiles
        )
        # What filling reads must be the same some steps earlier, and before the loop.
        is_early = not any(
            buffer in (computed.writes if buffer in self.shared else self.all.writes)
            for buffer in filled.reads
        )
        if not tiles or not are_alone or not is_early:
            return None
        has_shared_reads = any(buffer in self.shared for buffer in filled.reads)
        return _Step(tuple(map(_with_copies, fill)), compute, tiles, has_shared_reads)

    def _tile_count(self, step: _Step, extent: int) -> int:
        """Return how many tiles shared memory holds; 1 if no copy is asynchronous."""
        if not any(isinstance(visit.statement, AsyncCopy) for visit in walk(block(step.fill))):
            return 1
        held = sum(aligned_bytes(self.wide.get(buffer, buffer)) for buffer in self.shared)
        tile_bytes = sum(map(aligned_bytes, step.tiles))
        count = min(self.buffers, extent)
        while count > 1 and held + (count - 1) * tile_bytes > self.shared_bytes:
            count -= 1
        return count

    def _in_turn(self, loop: For, step: _Step, count: int, *, is_repeated: bool) -> Statement:
        self.wide.update({tile: replace(tile, shape=(count, *tile.shape)) for tile in step.tiles})
        ahead = count - 1
        before: list[Statement] = [Barrier()] if is_repeated or step.has_shared_reads else []
        for number in range(ahead):
            before += [self._filled(loop, step, _number(number), _number(number)), AsyncCommit()]
        later = Arith(ArithOp.ADD, (loop.var, _number(ahead)))
        refill = self._filled(loop, step, later, Arith(ArithOp.FLOOR_MOD, (later, _number(count))))
        is_left = Arith(ArithOp.LT, (loop.var, _number(loop.extent - ahead)))
        turn = Arith(ArithOp.FLOOR_MOD, (loop.var, _number(count)))
        body = block(
            (
                *(AsyncWait(ahead - 1), Barrier(), IfThenElse(is_left, refill), AsyncCommit()),
                self._in_tile(step, turn).statement(block(step.compute)),
            )
        )
        return block([*before, with_body(loop, body)])

    def _filled(self, loop: For, step: _Step, number: Scalar, turn: Scalar) -> Statement:
        """Return the statement that fills the tile of a step's number."""
        numbered = Replacement(counters={loop.var: number}).statement(block(step.fill))
        return self._in_tile(step, turn).statement(numbered)

    def _in_tile(self, step: _Step, turn: Scalar) -> Replacement:
        return Replacement(accesses={tile: _InTile(self.wide[tile], turn) for tile in step.tiles})


@dataclass(frozen=True, slots=True)
class _InTile:
    """Function from the indices of a tile to the place of the element in a buffer of several tiles."""

    wide: Buffer
    turn: Scalar

    def __call__(self, indices: Indices) -> tuple[Buffer, Indices]:
        """Return the buffer of several tiles, and the indices with the tile's number first."""
        return self.wide, (self.turn, *indices)


def _number(value: int) -> Literal:
    return Literal(value, DType.INT64)


def _has_any(statements: Iterable[Statement], kind: type[object] | UnionType) -> bool:
    """Return whether a statement of a kind stands in statements."""
    return any(isinstance(visit.statement, kind) for inner in statements for visit in walk(inner))


def _with_copies(statement: Statement) -> Statement:
    """Return a statement that fills tiles with asynchronous copies where it copies memory."""
    match statement:
        case Block():
            return block([_with_copies(inner) for inner in flat(statement)])
        case For(kind=ForKind.VECTORIZED):
            return _wide_copy(statement, statement.body) or statement
        case For():
            return with_body(statement, _with_copies(statement.body))
        case IfThenElse(otherwise=otherwise):
            second = None if otherwise is None else _with_copies(otherwise)
            return IfThenElse(statement.cond, _with_copies(statement.then), second)
        case Store(value=Load(buffer=source) as value) if _can_be_copied(source, 1):
            return AsyncCopy(Load(statement.buffer, statement.indices), value, 1)
        case _:
            return statement


def _can_be_copied(source: Buffer, width: int) -> bool:
    is_row = source.scope is MemoryScope.GLOBAL and bool(source.shape)
    return is_row and width * source.dtype.numpy.itemsize in COPY_SIZES


def _wide_copy(loop: For, body: Statement) -> Statement | None:
    """Return the copy of all elements of a vectorised loop at once; None if their rows are not aligned."""
    match flat(body):
        case [IfThenElse() as guard] if loop.var not in loop_vars(guard.cond):
            inside = _wide_copy(loop, guard.then)
            if inside is None or guard.otherwise is None:
                return None if inside is None else IfThenElse(guard.cond, inside)
            return _with_zeros(loop, guard, inside)
        case [Store(value=Load() as source) as store] if _can_be_copied(source.buffer, loop.extent):
            elements = (Load(store.buffer, store.indices), source)
            if all(_is_aligned_row(element, loop.var, loop.extent) for element in elements):
                first = Replacement(counters={loop.var: _number(0)})
                target, start = map(first.scalar, elements)
                assert isinstance(target, Load)
                assert isinstance(start, Load)
                return AsyncCopy(target, start, loop.extent)
    return None


def _with_zeros(loop: For, guard: IfThenElse, copy: Statement) -> Statement | None:
    """Return a copy that writes zeros where a guard does not hold; None if its other branch stores others."""
    match flat(guard.then), flat(guard.otherwise or Block(())), copy:
        case [Store() as store], [Store(value=Literal(value=0)) as zero], AsyncCopy(valid=None):
            if (store.buffer, store.indices) == (zero.buffer, zero.indices):
                valid = Arith(ArithOp.SELECT, (guard.cond, _number(loop.extent), _number(0)))
                return replace(copy, valid=valid)
    return None


def _is_aligned_row(element: Load, var: LoopVar, width: int) -> bool:
    """Return whether the elements that a counter runs through are a row, which starts at a multiple of it."""
    *outer, last = element.indices
    if any(var in loop_vars(index) for index in outer):
        return False
    simplifier = ScalarSimplifier({})
    strides = [prod(element.buffer.shape[number + 1 :]) for number in range(len(element.indices))]
    for index, stride in zip(element.indices, strides, strict=True):
        sums = simplifier.linear(index)
        steps = {part: factor * stride for part, factor in sums.terms.items()}
        if index is last and steps.pop(var, 0) != 1:
            return False
        is_aligned = all(not factor % width and var not in loop_vars(part) for part, factor in steps.items())
        if not is_aligned or sums.constant * stride % width:
            return False
    return True
