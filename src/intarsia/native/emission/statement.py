"""Statements of the loop language as LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Final

from intarsia.ir.prim_func import (
    Allocate,
    ArithOp,
    Block,
    For,
    ForKind,
    IfThenElse,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.emission.affine_index import AffineIndex
from intarsia.native.emission.arithmetic import binary, bool_not, mask_lanes, select
from intarsia.native.emission.loops import close_loop, open_loop
from intarsia.native.emission.memory import prefetch_lines, store
from intarsia.native.emission.parallel import emit_parallel
from intarsia.native.emission.registers import Branch, RegisterPlace
from intarsia.native.emission.scalar import Scalars
from intarsia.native.emission.state import FunctionState, MemoryPlace
from intarsia.native.emission.tail import tail_mask
from intarsia.native.emission.types import Value, held_type, stored_bytes

_MOST_STACK: Final = 16384
_LARGEST_ON_STACK: Final = 4096
_MOST_CHUNKS: Final = 8
"""Maximum number of vectors of one loop that are unrolled; more of them become a loop."""
_MOST_OF_PATTERNS: Final = 2560
"""Elements of a loop up to which all of its vectors are unrolled where reads have constant lanes only then:
else each index is divided. Rows of 960 elements of a Resize take 0.11 to 0.16 of the time, and 0.05 s more to
compile (Zen 4, 8 and 16 lanes)."""
_MOST_UNROLLED: Final = 1024
"""Maximum number of unrolled iterations, unless register buffers need more."""
_LINE: Final = 64
"""Bytes of a cache line, to which scratch buffers are aligned."""


@dataclass(slots=True)
class Statements:
    """Emits statements."""

    state: FunctionState
    scalars: Scalars
    tail: Value | None = None
    """Mask of the remainder of the enclosing vectorised loop, if it is one."""

    def emit(self, statement: Statement) -> None:
        """Emit a statement with its nested statements."""
        match statement:
            case Store():
                self._store(statement)
            case Block():
                for inner in statement.statements:
                    self.emit(inner)
            case For():
                self._for(statement)
            case Allocate():
                self._allocate(statement)
            case IfThenElse():
                self._if(statement)

    def _store(self, statement: Store) -> None:
        state = self.state
        value = self.scalars.value(statement.value)
        register = state.registers.places.get(statement.buffer.name)
        if register is not None:
            self._write_register(register, self.scalars.elements(statement), value)
        else:
            store(state, state.memory[statement.buffer.name], self.scalars.flat(statement), value)

    def _write_register(
        self, register: RegisterPlace, elements: tuple[int, int] | list[int], value: Value
    ) -> None:
        state = self.state
        if isinstance(elements, list):
            for lane, element in enumerate(elements):
                self._write_lane(register, element, lane, state.builder.lane(value, lane))
            return
        start, width = elements
        lanes = register.private_lanes or (width if width > 1 else 0)
        if value.lanes and not lanes:
            for lane in range(value.lanes) if state.mask is not None else (value.lanes - 1,):
                self._write_lane(register, start, lane, state.builder.lane(value, lane))
            return
        text = state.builder.splat(value, lanes)
        if state.mask is not None and lanes and not self._ends_in_padding(register, start, width):
            old = state.registers.read(register, start, width)
            text = select(state.builder, state.mask, Value(text, register.dtype, lanes), old).text
        state.registers.write(register, start, width, text)

    def _ends_in_padding(self, register: RegisterPlace, start: int, width: int) -> bool:
        """Return whether nothing reads the lanes that are off in the rest of a loop, as in padding."""
        mask = self.state.mask
        active = None if mask is None or mask is not self.tail else mask_lanes(mask)
        if active is not None and register.private_lanes:
            return True
        return active is not None and register.ends_in_padding(start, width, sum(active))

    def _write_lane(self, register: RegisterPlace, element: int, lane: int, value: Value) -> None:
        """Emit the write of one lane into one element."""
        builder, registers, mask = self.state.builder, self.state.registers, self.state.mask
        old = registers.read(register, element, 1)
        if mask is not None:
            value = select(builder, builder.lane(mask, lane), value, builder.lane(old, lane))
        text = value.text
        if register.private_lanes:
            kind = held_type(register.dtype, register.private_lanes)
            element_kind = held_type(register.dtype)
            text = builder.pure(f"insertelement {kind} {old.text}, {element_kind} {text}, i64 {lane}")
        registers.write(register, element, 1, text)

    def _for(self, loop: For) -> None:
        state = self.state
        if loop.extent == 0:
            return
        if loop.count is not None:
            self._counted(loop, loop.count)
            return
        facts, checked = state.kernel.facts, state.kernel.bounds_checked
        is_expanded = id(loop) in facts.constant_loops
        width = 0 if checked else self._width(loop)
        if loop.extent == 1:
            self._with(loop, AffineIndex(0))
        elif width > 1:
            self._in_lanes(loop, width, is_expanded)
        elif is_expanded or (loop.kind is ForKind.UNROLLED and loop.extent <= _MOST_UNROLLED):
            state.unrolled[loop.var.name] = loop.extent
            for number in range(loop.extent):
                self._with(loop, AffineIndex(number))
            state.unrolled.pop(loop.var.name, None)
        elif loop.kind is ForKind.PARALLEL and state.runtime is not None and not state.lanes and not checked:
            emit_parallel(state, loop, _emit_function)
        else:
            self.serial(loop, "0", str(loop.extent), lambda counter: self._with(loop, counter))

    def _counted(self, loop: For, count: Scalar) -> None:
        """Emit a loop whose number of iterations is known at run time only, skipped if there are none."""
        state = self.state
        end = self.scalars.value(count).text
        some = state.builder.value_of(f"icmp slt i64 0, {end}")
        is_parallel = loop.kind is ForKind.PARALLEL and state.runtime is not None

        def emit() -> None:
            if is_parallel and not state.kernel.bounds_checked:
                emit_parallel(state, loop, _emit_function, end)
            else:
                self.serial(loop, "0", end, lambda counter: self._with(loop, counter))

        with _apart(state):
            self._branches(some, loop.body, None, emit)

    def _width(self, loop: For) -> int:
        """Return the number of lanes of a loop; 0 or 1 for a scalar loop."""
        state = self.state
        inside = state.kernel.facts.contents(loop.body)
        if loop.kind is not ForKind.VECTORIZED or inside.has_vectors or state.lanes:
            return 0
        if not state.kernel.facts.can_run_in_lanes(loop):
            return 0
        whole = state.kernel.vector_bytes // inside.widest
        most = whole if tail_mask(state, loop, whole) is not None else min(loop.extent, whole)
        return 1 << most.bit_length() - 1 if most else 0

    def _with(self, loop: For, counter: AffineIndex) -> None:
        env = self.state.env
        env[loop.var.name] = counter
        self.emit(loop.body)
        del env[loop.var.name]

    def serial(self, loop: For, start: str, end: str, body: Callable[[AffineIndex], None]) -> None:
        """Emit a serial loop from `start` to `end`, which is greater."""
        state = self.state
        inside = state.kernel.facts.contents(loop.body)
        for name in inside.stores:
            state.versions[name] = state.versions.get(name, 0) + 1
        opened = open_loop(state.builder, start)
        counter = state.symbols.counter(opened.counter, 0, loop.extent - 1, opened.frame)
        state.registers.enter_loop(opened.frame, inside.stores)
        state.env[loop.var.name] = counter
        for prefetch in state.kernel.prefetches.get(id(loop), ()):
            prefetch_lines(state, prefetch)
        with _apart(state):
            body(counter)
        state.registers.leave_loop()
        close_loop(state.builder, opened, end, self._loop_note(loop))

    def _loop_note(self, _loop: For) -> str:
        """Return the metadata of a loop's branch."""
        return ""

    def _in_lanes(self, loop: For, width: int, is_expanded: bool) -> None:
        """Emit a loop as vectors of the machine's width, then narrower ones for the remainder."""
        count, begin = loop.extent // width, 0
        mask = tail_mask(self.state, loop, width)
        has_patterns = self.state.kernel.facts.has_divided_reads(loop) and loop.extent <= _MOST_OF_PATTERNS
        most = count if has_patterns else _MOST_CHUNKS
        if count > most and not is_expanded:
            whole = For(loop.var, count, loop.body)
            self.serial(whole, "0", str(count), lambda n: self._chunk(loop, width, _times(n, width)))
            begin = count * width
        while begin < loop.extent:
            if begin + width > loop.extent and mask is not None:
                self.state.mask = self.tail = mask
                self._chunk(loop, width, AffineIndex(begin))
                self.state.mask = self.tail = None
                return
            while begin + width > loop.extent:
                width //= 2
            self._chunk(loop, width, AffineIndex(begin))
            begin += width

    def _chunk(self, loop: For, width: int, base: AffineIndex) -> None:
        state = self.state
        if width == 1:
            self._with(loop, base)
            return
        state.lanes, state.lane_var = width, loop.var.name
        self._with(loop, base._replace(lane=1))
        state.lanes, state.lane_var = 0, None

    def _allocate(self, statement: Allocate) -> None:
        state, buffer = self.state, statement.buffer
        if buffer.name in state.kernel.facts.registers:
            places = state.registers.places
            depth = len(state.registers.loops)
            row = buffer.shape[-1] if buffer.shape else 1
            end = state.kernel.facts.row_ends.get(buffer.name, row)
            places[buffer.name] = RegisterPlace(buffer.name, buffer.dtype, state.lanes, depth, row, end)
            self.emit(statement.body)
            del state.registers.places[buffer.name]
            return
        top = state.scratch_top
        base = self._space(statement)
        align = min(_LINE, state.kernel.vector_bytes)
        state.memory[buffer.name] = MemoryPlace(
            buffer.name, base, buffer.dtype, buffer.shape, align, state.lanes, state.kernel.has_masks
        )
        state.versions[buffer.name] = state.versions.get(buffer.name, 0) + 1
        self.emit(statement.body)
        del state.memory[buffer.name]
        state.scratch_top = top

    def _space(self, statement: Allocate) -> str:
        """Return the address of memory for a buffer: on the stack if small, else in the thread's scratch."""
        state, buffer = self.state, statement.buffer
        size = max(1, prod(buffer.shape)) * stored_bytes(buffer.dtype) * max(1, state.lanes)
        size += state.kernel.vector_bytes if state.kernel.has_masks else 0
        key = (id(statement), state.lanes)
        if key in state.allocas:
            return state.allocas[key]
        if size <= _LARGEST_ON_STACK and state.stack_bytes + size <= _MOST_STACK:
            state.stack_bytes += size
            text = state.builder.fresh("stack")
            state.root.before.append(f"  {text} = alloca [{size} x i8], align {_LINE}")
            state.allocas[key] = text
            return text
        offset = -(-state.scratch_top // _LINE) * _LINE
        state.scratch_top = offset + size
        state.kernel.scratch_bytes = max(state.kernel.scratch_bytes, state.scratch_top)
        return state.builder.pure(f"getelementptr i8, ptr {state.scratch}, i64 {offset}")

    def _if(self, statement: IfThenElse) -> None:
        with _apart(self.state):
            self._conditional(statement)

    def _conditional(self, statement: IfThenElse) -> None:
        cond = self.scalars.value(statement.cond)
        if cond.lanes:
            self._masked(statement.then, cond)
            if statement.otherwise is not None:
                self._masked(statement.otherwise, bool_not(self.state.builder, cond))
        elif cond.text in ("true", "false"):
            taken = statement.then if cond.text == "true" else statement.otherwise
            if taken is not None:
                self.emit(taken)
        else:
            self._branches(cond.text, statement.then, statement.otherwise)

    def _masked(self, statement: Statement, cond: Value) -> None:
        """Emit a statement in the lanes of a mask; a branch skips it if no lane is active.

        So loads that lanes share do not run without an active lane.
        """
        state, around = self.state, self.state.mask
        builder = state.builder
        active = cond if around is None else binary(builder, ArithOp.AND, around, cond, False)
        lanes = mask_lanes(active)
        if lanes is not None and not any(lanes):
            return
        state.mask = None if lanes is not None and all(lanes) else active
        if lanes is not None:
            self.emit(statement)
        else:
            bits = builder.pure(f"bitcast <{active.lanes} x i1> {active.text} to i{active.lanes}")
            some = builder.pure(f"icmp ne i{active.lanes} {bits}, 0")
            self._branches(some, statement, None)
        state.mask = around

    def _branches(
        self,
        cond: str,
        then: Statement,
        otherwise: Statement | None,
        emit_then: Callable[[], None] | None = None,
    ) -> None:
        """Emit two branches; `emit_then` emits the first one if it is more than the statement `then`."""
        builder, registers = self.state.builder, self.state.registers
        before = registers.snapshot()
        merge, first = builder.label("merge"), builder.label("then")
        second = merge if otherwise is None else builder.label("else")
        skipped = Branch(before, builder.hole(), builder.block)
        builder.branch(cond, first, second)
        taken = self._branch(emit_then or partial(self.emit, then), first, merge)
        written = self.state.kernel.facts.contents(then).stores
        if otherwise is not None:
            registers.places = before
            skipped = self._branch(partial(self.emit, otherwise), second, merge)
            written |= self.state.kernel.facts.contents(otherwise).stores
        builder.start(merge)
        registers.merge(taken, skipped, written)
        for name in written:
            self.state.versions[name] = self.state.versions.get(name, 0) + 1

    def _branch(self, emit: Callable[[], None], label: str, merge: str) -> Branch:
        builder = self.state.builder
        builder.start(label)
        with builder.conditional():
            emit()
        result = Branch(self.state.registers.places, builder.hole(), builder.block)
        builder.jump(merge)
        return result


@contextmanager
def _apart(state: FunctionState) -> Iterator[None]:
    """Emit what does not run in each iteration of the unrolled loops around it, or runs many times in one."""
    around, state.unrolled = state.unrolled, {}
    yield
    state.unrolled = around


def _times(value: AffineIndex, factor: int) -> AffineIndex:
    return AffineIndex(0, 0, tuple((symbol, factor * coefficient) for symbol, coefficient in value.terms))


def _emit_function(state: FunctionState, loop: For, begin: str, end: str) -> None:
    """Emit the iterations of a parallel loop from `begin` to `end`, in the body function."""
    statements = Statements(state, Scalars(state))

    def body(counter: AffineIndex) -> None:
        state.env[loop.var.name] = counter
        statements.emit(loop.body)

    statements.serial(loop, begin, end, body)
