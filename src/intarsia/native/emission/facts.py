"""What is known about a loop function before it is emitted: what it accesses, what fits in registers."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Final, NamedTuple

from intarsia.ir.loop_walk import Event, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import (
    Allocate,
    Block,
    Buffer,
    Cast,
    For,
    ForKind,
    IfThenElse,
    Intrinsic,
    Load,
    LoopVar,
    MemoryScope,
    PrimFunc,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.emission.index import AccessPlan, Forms, access_plan
from intarsia.native.emission.reads import Reads, reads_of
from intarsia.native.emission.types import held_bytes

_MOST_REGISTERS: Final = 1024
"""Elements of the largest buffer that is held in registers."""

_MOST_EXPANDED: Final = 4 * _MOST_REGISTERS
"""Iterations of the loops that are expanded for one access to such a buffer.

Few elements may be read in many iterations: `held[i floordiv 524288]` of two elements in a million.
"""


class Contents(NamedTuple):
    """What stands inside a statement.

    Attributes:
        stores: Names of the buffers that are written.
        loads: Names of the buffers that are read.
        allocates: Names of the buffers that begin there.
        has_vectors: Whether there is a vectorised loop.
        widest: Bytes of the widest element that is computed with.
    """

    stores: frozenset[str] = frozenset()
    loads: frozenset[str] = frozenset()
    allocates: frozenset[str] = frozenset()
    has_vectors: bool = False
    widest: int = 1

    def __or__(self, other: Contents) -> Contents:
        return Contents(
            self.stores | other.stores,
            self.loads | other.loads,
            self.allocates | other.allocates,
            self.has_vectors or other.has_vectors,
            max(self.widest, other.widest),
        )


@dataclass(slots=True)
class Facts:
    """What is known about one loop function; nodes are known by identity, so it must be kept alive."""

    prim_func: PrimFunc
    registers: frozenset[str] = frozenset()
    constant_loops: frozenset[int] = frozenset()
    _contents: dict[int, Contents] = field(default_factory=dict)
    _plans: dict[int, AccessPlan | None] = field(default_factory=dict)
    _forms: Forms = field(default_factory=dict)
    _reads: Reads = field(default_factory=dict)
    _counters: dict[int, tuple[str, ...] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.registers, self.constant_loops = _registers(self.prim_func, self._reads)

    def contents(self, statement: Statement) -> Contents:
        """What stands inside a statement."""
        known = self._contents.get(id(statement))
        if known is None:
            known = self._contents[id(statement)] = self._find(statement)
        return known

    def _find(self, statement: Statement) -> Contents:
        found = self._own_contents(statement)
        match statement:
            case Block():
                for inner in statement.statements:
                    found = found | self.contents(inner)
            case For():
                found = found | self.contents(statement.body)
                if statement.kind is ForKind.VECTORIZED and statement.extent > 1:
                    found = found._replace(has_vectors=True)
            case Store():
                own = frozenset({statement.buffer.name})
                found = found | Contents(stores=own, widest=held_bytes(statement.buffer.dtype))
            case Allocate():
                own = frozenset({statement.buffer.name})
                found = found | self.contents(statement.body) | Contents(allocates=own)
            case IfThenElse():
                found = found | self.contents(statement.then)
                if statement.otherwise is not None:
                    found = found | self.contents(statement.otherwise)
        return found

    def _own_contents(self, statement: Statement) -> Contents:
        """What a statement's own scalars read."""
        found = [reads_of(scalar, self._reads) for scalar in scalars(statement)]
        loads = frozenset(load.buffer.name for each in found for load in each.loads)
        return Contents(loads=loads, widest=max((each.widest for each in found), default=1))

    def loads(self, statement: Statement) -> list[Load]:
        """What a statement's own scalars read, with indices."""
        return [load for scalar in scalars(statement) for load in reads_of(scalar, self._reads).loads]

    def plan(self, access: Load | Store) -> AccessPlan | None:
        """Where the element of an access lies, if its indices are sums of multiples of loop variables."""
        key = id(access)
        if key not in self._plans:
            self._plans[key] = access_plan(access.buffer, access.indices, self._forms)
        return self._plans[key]

    def counters(self, index: Scalar) -> tuple[str, ...] | None:
        """The names of the counters in an index; None if there is anything but arithmetic on them."""
        key = id(index)
        if key not in self._counters:
            self._counters[key] = _counters((index,))
        return self._counters[key]

    def can_run_in_lanes(self, loop: For) -> bool:
        """Whether iterations may run together: none reads what another one writes at the same time."""
        inside = self.contents(loop.body)
        shared = (inside.stores & inside.loads) - inside.allocates
        if not shared:
            return True
        for visit in walk(loop.body):
            statement = visit.statement
            if not isinstance(statement, Store) or statement.buffer.name not in shared:
                continue
            plan = self.plan(statement)
            if plan is None or not any(name == loop.var.name for name, _ in plan.terms):
                return False
        return True


def _registers(prim_func: PrimFunc, reads: Reads) -> tuple[frozenset[str], frozenset[int]]:
    """Buffers that are held in registers, and the loops (by identity) that are expanded for that."""
    loops: list[For] = []
    born: dict[str, int] = {}
    refused: set[str] = set()
    expanded: dict[str, set[int]] = {}
    counters: dict[int, tuple[str, ...] | None] = {}
    for visit in walk(prim_func.body):
        statement = visit.statement
        if isinstance(statement, For) and visit.event is not Event.ELSE:
            loops.append(statement) if visit.event is Event.ENTER else loops.pop()
        if visit.event is not Event.ENTER:
            continue
        threads = _threads(loops)
        if isinstance(statement, Allocate) and _may_be_register(statement.buffer):
            born[statement.buffer.name] = threads
            expanded[statement.buffer.name] = set()
        own = [access for access in _accesses(statement, reads) if access.buffer.name in born]
        around = {loop.var.name: loop for loop in loops} if own else {}
        for access in own:
            name = access.buffer.name
            needed = _loops_to_expand(access.indices, around, counters)
            if needed is None or threads != born[name]:
                refused.add(name)
            else:
                expanded[name] |= needed
    kept = frozenset(born) - refused
    return kept, frozenset(number for name in kept for number in expanded[name])


def _threads(loops: list[For]) -> int:
    return int(any(loop.kind is ForKind.PARALLEL and loop.extent > 1 for loop in loops))


def _may_be_register(buffer: Buffer) -> bool:
    return not buffer.shape or (
        buffer.scope is MemoryScope.REGISTER and 0 < prod(buffer.shape) <= _MOST_REGISTERS
    )


def _accesses(statement: Statement, reads: Reads) -> list[Load | Store]:
    found: list[Load | Store] = [statement] if isinstance(statement, Store) else []
    for scalar in scalars(statement):
        found += reads_of(scalar, reads).loads
    return found


def _loops_to_expand(
    indices: tuple[Scalar, ...], around: dict[str, For], counters: dict[int, tuple[str, ...] | None]
) -> set[int] | None:
    """The loops whose variables the indices name; None if they are not constant once those are expanded.

    None as well if they have more than `_MOST_EXPANDED` iterations.

    Args:
        indices: Of the access.
        around: The loops around it by their variables' names.
        counters: For indices by identity the names in them; None if there is more. Those found are added.
    """
    if id(indices) not in counters:
        counters[id(indices)] = _counters(indices)
    names = counters[id(indices)]
    if names is None:
        return None
    found, iterations = set(), 1
    for name in names:
        loop = around[name]
        if loop.kind in (ForKind.UNROLLED, ForKind.VECTORIZED):
            found.add(id(loop))
            iterations *= loop.extent
        elif loop.extent > 1:
            return None
    return found if iterations <= _MOST_EXPANDED else None


def _counters(indices: tuple[Scalar, ...]) -> tuple[str, ...] | None:
    """The names of the counters in indices; None if there is anything but arithmetic on them."""
    found: dict[str, None] = {}
    for root in indices:
        for scalar, _ in scalar_post_order(root):
            match scalar:
                case LoopVar():
                    found[scalar.name] = None
                case Load() | Intrinsic() | Cast():
                    return None
    return tuple(found)
