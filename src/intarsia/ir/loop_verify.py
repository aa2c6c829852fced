"""The rules of loop functions: names, types, numbers of indices and operands; iterative and linear.

That indices lie inside their buffers, and that the order of a parallel loop does not matter, is what a loop
function promises; it is not checked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from intarsia.ir.complaint import Complaint
from intarsia.ir.dtype import DType
from intarsia.ir.kernel_verify import KernelPosition
from intarsia.ir.loop_literal import loop_name_text
from intarsia.ir.loop_printer import HEAD
from intarsia.ir.loop_walk import Event, operands, scalar_post_order, scalars, walk
from intarsia.ir.prim_func import (
    DEEPEST,
    Allocate,
    AnyKernelStatement,
    AsyncCopy,
    Buffer,
    Cast,
    For,
    ForKind,
    IfThenElse,
    KernelStatement,
    Literal,
    Load,
    LoopVar,
    MemoryScope,
    PrimFunc,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.scalar_types import LOOP_DTYPES, dtype_over, scalar_complaint, scalar_dtype


def loop_complaints(owner: str, function: PrimFunc) -> Iterator[Complaint]:
    """Complaints about one loop function."""
    names = _Names()
    for param in function.params:
        yield from (Complaint(owner, HEAD, text) for text in names.declared(param))
        if param.scope is not MemoryScope.GLOBAL:
            scope = f"the parameter {loop_name_text(param.name)} is in the scope {param.scope.value}"
            yield Complaint(owner, HEAD, f"{scope}; expected global")
        names.buffers[param.name] = param
    position = KernelPosition()
    for visit in walk(function.body):
        statement = visit.statement
        if visit.event is Event.ENTER:
            texts = list(dict.fromkeys((*_own_complaints(statement, names), *position.complaints(statement))))
            if visit.depth == DEEPEST:
                texts.append(f"statements stand inside each other more than {DEEPEST} deep")
            yield from (Complaint(owner, visit.number, text) for text in texts)
        names.follow(statement, visit.event)
        position.follow(statement, visit.event)


@dataclass(slots=True)
class _Names:
    """What is in scope.

    Attributes:
        buffers: The buffers by name.
        loop_vars: Number of enclosing loops with a variable of that name.
        used: Names of all buffers so far, in scope or not.
    """

    buffers: dict[str, Buffer] = field(default_factory=dict)
    loop_vars: dict[str, int] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    hidden: list[Buffer | None] = field(default_factory=list)

    def declared(self, buffer: Buffer) -> Iterator[str]:
        name = loop_name_text(buffer.name)
        if buffer.name in self.used:
            yield f"a second buffer is named {name}"
        self.used.add(buffer.name)
        if buffer.dtype not in LOOP_DTYPES:
            yield f"{name} holds {buffer.dtype.value}, which loop functions cannot compute with"
        if not all(_is_extent(extent) for extent in buffer.shape):
            yield f"{name} has the shape {buffer.shape}; expected numbers from 0"

    def follow(self, statement: Statement, event: Event) -> None:
        """Bind where a statement begins, and unbind where it ends."""
        match statement, event:
            case For(), Event.ENTER:
                self.loop_vars[statement.var.name] = self.loop_vars.get(statement.var.name, 0) + 1
            case For(), Event.LEAVE:
                self.loop_vars[statement.var.name] -= 1
            case Allocate(), Event.ENTER:
                self.hidden.append(self.buffers.get(statement.buffer.name))
                self.buffers[statement.buffer.name] = statement.buffer
            case Allocate(), Event.LEAVE:
                outer = self.hidden.pop()
                if outer is None:
                    del self.buffers[statement.buffer.name]
                else:
                    self.buffers[statement.buffer.name] = outer


def _is_extent(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _own_complaints(statement: Statement, names: _Names) -> Iterator[str]:
    match statement:
        case Store():
            yield from _store_complaints(statement, names)
        case KernelStatement():
            yield from _kernel_scalar_complaints(statement, names)
        case For():
            if not _is_extent(statement.extent):
                yield f"the extent is {statement.extent}; expected a number from 0"
            yield from _count_complaints(statement, names)
            if names.loop_vars.get(statement.var.name):
                yield f"a loop around it has the variable {loop_name_text(statement.var.name)} already"
        case Allocate():
            yield from names.declared(statement.buffer)
        case IfThenElse():
            yield from _scalar_complaints(statement.cond, names)
            if scalar_dtype(statement.cond) not in (None, DType.BOOL):
                yield f"the condition is {scalar_dtype(statement.cond)}; expected bool"


def _store_complaints(store: Store, names: _Names) -> Iterator[str]:
    yield from _access_complaints(store.buffer, store.indices, names)
    for index in store.indices:
        yield from _scalar_complaints(index, names)
    yield from _scalar_complaints(store.value, names)
    dtype, expected = scalar_dtype(store.value), store.buffer.dtype
    if dtype not in (None, expected):
        yield f"the value is {dtype}; expected {expected.value}, the type of the buffer"


def _kernel_scalar_complaints(statement: AnyKernelStatement, names: _Names) -> Iterator[str]:
    for scalar in scalars(statement):
        yield from _scalar_complaints(scalar, names)
    if isinstance(statement, AsyncCopy):
        yield from _access_complaints(statement.target.buffer, statement.target.indices, names)
        if statement.valid is not None and scalar_dtype(statement.valid) not in (None, DType.INT64):
            yield f"the number of valid elements is {scalar_dtype(statement.valid)}; expected int64"


def _count_complaints(loop: For, names: _Names) -> Iterator[str]:
    if loop.count is None:
        return
    yield from _scalar_complaints(loop.count, names)
    dtype = scalar_dtype(loop.count)
    if dtype not in (None, DType.INT64):
        yield f"the count is {dtype}; expected int64"
    if loop.kind in (ForKind.VECTORIZED, ForKind.UNROLLED, ForKind.VIRTUAL, ForKind.THREAD):
        yield f"a loop with a count is {loop.kind.value}; expected serial, parallel or block"


def _access_complaints(buffer: Buffer, indices: tuple[Scalar, ...], names: _Names) -> Iterator[str]:
    name = loop_name_text(buffer.name)
    declared = names.buffers.get(buffer.name)
    if declared is None:
        yield f"unknown buffer {name}"
    elif declared != buffer:
        yield f"{name} is used as {buffer}; expected {declared}"
    if len(indices) != len(buffer.shape):
        yield f"found {len(indices)} as the number of indices of {name}; expected {len(buffer.shape)}"
    for position, index in enumerate(indices):
        dtype = scalar_dtype(index)
        if dtype not in (None, DType.INT64):
            yield f"index {position} of {name} is {dtype}; expected int64"


def _scalar_complaints(root: Scalar, names: _Names) -> Iterator[str]:
    types: list[DType | None] = []
    deepest = 0
    for scalar, depth in scalar_post_order(root):
        deepest = max(deepest, depth)
        count = len(operands(scalar))
        given = types[len(types) - count :]
        del types[len(types) - count :]
        problem = scalar_complaint(scalar, given)
        if problem is not None:
            yield problem
        types.append(dtype_over(scalar, given))
        match scalar:
            case LoopVar() if not names.loop_vars.get(scalar.name):
                yield f"unbound loop variable {loop_name_text(scalar.name)}"
            case Load():
                yield from _access_complaints(scalar.buffer, scalar.indices, names)
            case Literal() | Cast() if scalar.dtype not in LOOP_DTYPES:
                yield f"{scalar.dtype.value} is a type that loop functions cannot compute with"
    if deepest >= DEEPEST:
        yield f"scalars stand inside each other more than {DEEPEST} deep"
