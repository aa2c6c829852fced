"""From where to where the buffers of a statement are needed."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import Allocate, Buffer, For, ForKind, Load, MemoryScope, Statement, Store


@dataclass(slots=True)
class Lifetime:
    """When a buffer is needed, in numbers of steps of a walk.

    Attributes:
        buffer: The buffer.
        begin: The first step that needs it.
        end: The last one.
        is_shared: Whether a parallel loop inside its allocation uses it.
    """

    buffer: Buffer
    begin: int = -1
    end: int = -1
    is_shared: bool = False

    def extend(self, begin: int, end: int) -> None:
        """Need it there too."""
        self.begin = begin if self.begin < 0 else min(self.begin, begin)
        self.end = max(self.end, end)


@dataclass(slots=True)
class _OpenLoop:
    """A loop around the place of a walk.

    Attributes:
        loop: The loop.
        begin: When it began.
        needed: Buffers from outside of it that are used inside: they are needed as long as it runs.
    """

    loop: For
    begin: int
    needed: list[Lifetime] = field(default_factory=list)


def lifetimes(body: Statement) -> list[Lifetime]:
    """Lifetimes of the buffers that are allocated in a statement, in the order of the text.

    Left out are registers, buffers that are not used, and those allocated in loops that are not serial.
    """
    walker = _Walker()
    for time, visit in enumerate(walk(body)):
        walker.step(visit.statement, visit.event, time)
    return [life for life in walker.found if life.begin >= 0]


@dataclass(slots=True)
class _Walker:
    """A walk.

    Attributes:
        found: All lifetimes.
        known: Those of buffers in scope, each with the number of loops around its allocation.
        loops: The loops around.
    """

    found: list[Lifetime] = field(default_factory=list)
    known: dict[Buffer, tuple[Lifetime, int]] = field(default_factory=dict)
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
                for life in closed.needed:
                    life.extend(closed.begin, time)
            case Allocate(buffer=buffer), Event.ENTER:
                is_inner = any(each.loop.kind is not ForKind.SERIAL for each in self.loops)
                if buffer.scope is not MemoryScope.REGISTER and not is_inner:
                    life = Lifetime(buffer)
                    self.found.append(life)
                    self.known[buffer] = life, len(self.loops)
            case Allocate(buffer=buffer), Event.LEAVE:
                self.known.pop(buffer, None)
            case _:
                pass

    def use(self, buffer: Buffer, time: int) -> None:
        if buffer not in self.known:
            return
        life, depth = self.known[buffer]
        life.extend(time, time)
        inside = self.loops[depth:]
        if inside:
            inside[0].needed.append(life)
        life.is_shared |= any(each.loop.kind is ForKind.PARALLEL for each in inside)


def _used(statement: Statement) -> list[Buffer]:
    stored = [statement.buffer] if isinstance(statement, Store) else []
    parts = (part for root in scalars(statement) for part, _ in scalar_post_order(root))
    return [*stored, *(part.buffer for part in parts if isinstance(part, Load))]
