"""Facts on a loop function before emission: its accesses, and the buffers that fit into registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, NamedTuple

from intarsia.ir.loop_walk import Event, inner_scalars, walk, written_elements
from intarsia.ir.prim_func import (
    Allocate,
    Block,
    Buffer,
    Cast,
    For,
    ForKind,
    IfThenElse,
    Intrinsic,
    KernelStatement,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    Mma,
    PrimFunc,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.warp import MMA_SUMS
from intarsia.native.emission.index import AccessPlan, Forms, access_plan, is_divided
from intarsia.native.emission.reads import Reads, reads_of_statement
from intarsia.native.emission.types import held_bytes
from intarsia.native.tir.affine import Range, affine, bounds

_MOST_REGISTERS: Final = 1024
"""Maximum number of elements of a buffer that is kept in registers."""

_MOST_EXPANDED: Final = 4 * _MOST_REGISTERS
"""Maximum number of iterations that are expanded for one access to such a buffer.

Few elements may be read in many iterations: `held[i floordiv 524288]` of two elements in a million.
"""


class Contents(NamedTuple):
    """Contents of a statement.

    Attributes:
        stores: Names of written buffers.
        loads: Names of read buffers.
        allocates: Names of allocated buffers.
        has_vectors: Whether there is a vectorised loop.
        widest: Size in bytes of the widest element in arithmetic.
    """

    stores: frozenset[str] = frozenset()
    loads: frozenset[str] = frozenset()
    allocates: frozenset[str] = frozenset()
    has_vectors: bool = False
    widest: int = 1

    def __or__(self, other: Contents) -> Contents:
        return Contents.joined((self, other))

    @classmethod
    def joined(cls, parts: Sequence[Contents]) -> Contents:
        """Return the contents of statements together."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            frozenset().union(*[part.stores for part in parts]),
            frozenset().union(*[part.loads for part in parts]),
            frozenset().union(*[part.allocates for part in parts]),
            any(part.has_vectors for part in parts),
            max([part.widest for part in parts], default=1),
        )


@dataclass(slots=True)
class Facts:
    """Facts on one loop function; keyed by the identity of nodes, so the function must be kept alive.

    Attributes:
        prim_func: The function.
        registers: Names of the buffers that are kept in registers.
        constant_loops: Identities of the loops that are expanded for them.
        row_ends: For each of them the largest index in the last dimension that is used, plus 1.
        row_buffers: Whether all vectorised loops that access a buffer are rows, by name and number of lanes.
        called_buffers: Whether a vectorised loop that accesses a buffer calls a function, by name.
    """

    prim_func: PrimFunc
    registers: frozenset[str] = frozenset()
    constant_loops: frozenset[int] = frozenset()
    row_ends: dict[str, int] = field(default_factory=dict)
    row_buffers: dict[tuple[str, int], bool] = field(default_factory=dict)
    called_buffers: dict[str, bool] = field(default_factory=dict)
    _contents: dict[int, Contents] = field(default_factory=dict)
    _plans: dict[int, AccessPlan | None] = field(default_factory=dict)
    _forms: Forms = field(default_factory=dict)
    _reads: Reads = field(default_factory=dict)
    _counters: dict[int, tuple[str, ...] | None] = field(default_factory=dict)
    _divided: dict[int, bool] = field(default_factory=dict)
    _sized: dict[int, tuple[str, ...] | None] = field(default_factory=dict)
    _sizes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        written = self.contents(self.prim_func.body).stores
        scalars = (param.name for param in self.prim_func.params if not param.shape)
        self._sizes = frozenset(scalars) - written
        self.registers, self.constant_loops = _registers(self.prim_func, self._reads)
        self.row_ends = self._find_row_ends() if self.registers else {}

    def _find_row_ends(self) -> dict[str, int]:
        """Return the largest index in the last dimension of buffers in registers that is used, plus 1."""
        ends: dict[str, int] = {}
        ranges: dict[LoopVar, Range] = {}
        for visit in walk(self.prim_func.body):
            statement = visit.statement
            if visit.event is not Event.ENTER:
                continue
            if isinstance(statement, For):
                # Loops of one name follow each other: the walk is inside of the last one that it has entered.
                ranges[statement.var] = (0, max(0, statement.extent - 1))
            for access in _accesses(statement, self._reads):
                name = access.buffer.name
                if name in self.registers and access.indices:
                    count = MMA_SUMS if isinstance(statement, Mma) else 1
                    ends[name] = max(ends.get(name, 0), _last_value(access.indices[-1], ranges) + count)
        return ends

    def contents(self, statement: Statement) -> Contents:
        """Return the contents of a statement."""
        contents = self._contents.get(id(statement))
        if contents is None:
            contents = self._contents[id(statement)] = self._find(statement)
        return contents

    def _find(self, statement: Statement) -> Contents:
        match statement:
            case Store():
                reads = reads_of_statement(statement, self._reads)
                stores = frozenset((statement.buffer.name,))
                widest = max(reads.widest, held_bytes(statement.buffer.dtype))
                return Contents(stores, _names(reads.loads), frozenset(), False, widest)
            case Block():
                # Copies of unrolled loops have few different contents.
                return Contents.joined(tuple(dict.fromkeys(map(self.contents, statement.statements))))
            case For():
                contents = self.contents(statement.body)
                if statement.count is not None:
                    reads = reads_of_statement(statement, self._reads)
                    contents |= Contents(loads=_names(reads.loads), widest=reads.widest)
                if statement.kind is ForKind.VECTORIZED and statement.extent > 1:
                    return contents._replace(has_vectors=True)
                return contents
            case KernelStatement():
                loads = _names(reads_of_statement(statement, self._reads).loads)
                return Contents(_names(written_elements(statement)), loads)
            case Allocate():
                names = frozenset((statement.buffer.name,))
                return self.contents(statement.body) | Contents(allocates=names)
            case IfThenElse():
                reads = reads_of_statement(statement, self._reads)
                parts = [Contents(loads=_names(reads.loads), widest=reads.widest)]
                parts.append(self.contents(statement.then))
                if statement.otherwise is not None:
                    parts.append(self.contents(statement.otherwise))
                return Contents.joined(parts)

    def loads(self, statement: Statement) -> tuple[Load, ...]:
        """Return the loads of a statement's scalars, including those in indices."""
        return reads_of_statement(statement, self._reads).loads

    def vector_loops_of(self, name: str) -> list[For]:
        """Return the innermost vectorised loops that access a buffer."""
        loops = [visit.statement for visit in walk(self.prim_func.body) if visit.event is Event.ENTER]
        return [
            loop
            for loop in loops
            if isinstance(loop, For) and loop.kind is ForKind.VECTORIZED
            for inside in [self.contents(loop.body)]
            if not inside.has_vectors and name in inside.stores | inside.loads
        ]

    def plan(self, access: Load | Store) -> AccessPlan | None:
        """Return the plan of an access whose indices are affine in loop variables, else None."""
        key, plans = id(access), self._plans
        if key in plans:
            return plans[key]
        plan = plans[key] = access_plan(access.buffer, access.indices, self._forms)
        return plan

    def has_divided_reads(self, loop: For) -> bool:
        """Return whether a loop reads at quotients or remainders of its counter that are no affine sums."""
        key = id(loop)
        if key not in self._divided:
            self._divided[key] = any(
                is_divided(load.indices, loop.var) and self.plan(load) is None
                for visit in walk(loop.body)
                if visit.event is Event.ENTER
                for load in self.loads(visit.statement)
            )
        return self._divided[key]

    def counters(self, index: Scalar) -> tuple[str, ...] | None:
        """Return the counters in an index; None if it has anything but arithmetic on counters."""
        key = id(index)
        if key not in self._counters:
            self._counters[key] = _counters((index,))
        return self._counters[key]

    def counters_of_sized(self, index: Scalar) -> tuple[str, ...] | None:
        """Return the counters in an index; None if it has anything but arithmetic on counters and sizes.

        Sizes are scalar parameters that the function does not write: a kernel for images of any size reads
        the distance from row to row in each of its indices.
        """
        key = id(index)
        if key not in self._sized:
            self._sized[key] = _counters((index,), self._sizes)
        return self._sized[key]

    def can_run_in_lanes(self, loop: For) -> bool:
        """Return whether iterations may run in lanes: none reads what another one writes."""
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
    """Return the buffers kept in registers, and the loops (by identity) that are expanded for them."""
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
        if isinstance(statement, Allocate) and _may_be_register(statement.buffer):
            born[statement.buffer.name] = _threads(loops)
            expanded[statement.buffer.name] = set()
        if not born:
            continue
        accesses = [access for access in _accesses(statement, reads) if access.buffer.name in born]
        if not accesses:
            continue
        threads, around = _threads(loops), {loop.var.name: loop for loop in loops}
        for access in accesses:
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


def _accesses(statement: Statement, reads: Reads) -> Sequence[Load | Store]:
    if isinstance(statement, Store):
        return (statement, *reads_of_statement(statement, reads).loads)
    is_reading = isinstance(statement, IfThenElse | KernelStatement)
    return reads_of_statement(statement, reads).loads if is_reading else ()


def _names(loads: Sequence[Load]) -> frozenset[str]:
    return frozenset([load.buffer.name for load in loads])


def _last_value(index: Scalar, ranges: dict[LoopVar, Range]) -> int:
    """Return the greatest value of an index."""
    if isinstance(index, LoopVar) and index in ranges:  # most indices are a counter or a number
        return ranges[index][1]
    if isinstance(index, Literal) and type(index.value) is int:
        return index.value
    return bounds(affine(index), ranges)[1]


def _loops_to_expand(
    indices: tuple[Scalar, ...], around: dict[str, For], counters: dict[int, tuple[str, ...] | None]
) -> set[int] | None:
    """Return the loops to expand so that indices are constant; None if that is impossible.

    None as well if they have more than `_MOST_EXPANDED` iterations.

    Args:
        indices: Indices of the access.
        around: Loops around the access by the names of their variables.
        counters: Cache of the counters in indices, by identity; None for other indices.
    """
    if id(indices) not in counters:
        counters[id(indices)] = _counters(indices)
    names = counters[id(indices)]
    if names is None:
        return None
    expanded, iterations = set(), 1
    for name in names:
        loop = around[name]
        if loop.kind in (ForKind.UNROLLED, ForKind.VECTORIZED):
            expanded.add(id(loop))
            iterations *= loop.extent
        elif loop.extent > 1:
            return None
    return expanded if iterations <= _MOST_EXPANDED else None


def _counters(indices: tuple[Scalar, ...], sizes: frozenset[str] = frozenset()) -> tuple[str, ...] | None:
    """Return the counters in indices; None if they have anything but arithmetic on counters and sizes."""
    counters: dict[str, None] = {}
    for root in indices:
        for scalar in inner_scalars(root):
            match scalar:
                case LoopVar():
                    counters[scalar.name] = None
                case Load(buffer=buffer) if buffer.name in sizes:
                    pass
                case Load() | Intrinsic() | Cast():
                    return None
    return tuple(counters)
