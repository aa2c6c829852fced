"""Live ranges of the buffers that a statement allocates."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk
from intarsia.ir.prim_func import Allocate, Buffer, For, ForKind, Load, MemoryScope, Statement, Store


@dataclass(slots=True)
class BufferLifetime:
    """The live range of a buffer, in step numbers of a walk.

    Attributes:
        buffer: The buffer.
        begin: First step that uses the buffer; -1 before any.
        end: Last step that uses the buffer.
        is_shared: Whether a parallel loop inside its allocation uses it.
    """

    buffer: Buffer
    begin: int = -1
    end: int = -1
    is_shared: bool = False

    def extend(self, begin: int, end: int) -> None:
        """Extend the live range to include the steps from `begin` to `end`."""
        self.begin = begin if self.begin < 0 else min(self.begin, begin)
        self.end = max(self.end, end)


@dataclass(slots=True)
class _OpenLoop:
    """A loop that the walk is in.

    Attributes:
        loop: The loop.
        begin: Step at which the loop was entered.
        needed: Live ranges of outer buffers that are used inside; they last for all iterations.
    """

    loop: For
    begin: int
    used: list[BufferLifetime] = field(default_factory=list)


def lifetimes(body: Statement) -> list[BufferLifetime]:
    """Return the live ranges of the buffers that are allocated in a statement, in program order.

    Left out are registers, buffers that are not used, and those allocated in loops that are not serial.
    """
    walker = _Walker()
    for time, visit in enumerate(walk(body)):
        walker.step(visit.statement, visit.event, time)
    return [life for life in walker.all if life.begin >= 0]


@dataclass(slots=True)
class _Walker:
    """State of the walk that finds live ranges.

    Attributes:
        all: Live ranges so far, in program order.
        in_scope: Live range of each buffer in scope, with the number of loops around its allocation.
        loops: Loops that the walk is in, outermost first.
    """

    all: list[BufferLifetime] = field(default_factory=list)
    in_scope: dict[Buffer, tuple[BufferLifetime, int]] = field(default_factory=dict)
    loops: list[_OpenLoop] = field(default_factory=list)

    def step(self, statement: Statement, event: Event, time: int) -> None:
        if event is Event.ENTER:
            for buffer in _used(statement):
                self.use(buffer, time)
        match statement, event:
            case For(), Event.ENTER:
                self.loops.append(_OpenLoop(statement, time))
            case For(), Event.LEAVE:
                closed = self.loops.pop()
                for life in closed.used:
                    life.extend(closed.begin, time)
            case Allocate(buffer=buffer), Event.ENTER:
                is_inner = any(open_loop.loop.kind is not ForKind.SERIAL for open_loop in self.loops)
                if buffer.scope is not MemoryScope.REGISTER and not is_inner:
                    life = BufferLifetime(buffer)
                    self.all.append(life)
                    self.in_scope[buffer] = life, len(self.loops)
            case Allocate(buffer=buffer), Event.LEAVE:
                self.in_scope.pop(buffer, None)
            case _:
                pass

    def use(self, buffer: Buffer, time: int) -> None:
        if buffer not in self.in_scope:  # a parameter, a register, or inside a loop that is not serial
            return
        life, depth = self.in_scope[buffer]
        life.extend(time, time)
        inside = self.loops[depth:]
        # The next iteration may read what this one stored: the buffer is live throughout the outermost loop.
        if inside:
            inside[0].used.append(life)
        life.is_shared |= any(open_loop.loop.kind is ForKind.PARALLEL for open_loop in inside)


def _used(statement: Statement) -> list[Buffer]:
    stored = [statement.buffer] if isinstance(statement, Store) else []
    parts = (part for root in scalars(statement) for part in inner_scalars(root))
    return [*stored, *(part.buffer for part in parts if isinstance(part, Load))]
