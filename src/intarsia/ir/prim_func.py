"""Loop functions and their language, declared on this page (DESIGN section 8).

    PrimFunc  = parameters (buffers), a statement, attributes
    Statement = Block | For | Store | Allocate | IfThenElse | Barrier
    Scalar    = LoopVar | Literal | Load | Arith | Cast | Intrinsic

A PrimFunc writes into buffers that its caller provides; it returns nothing. Everything here is immutable and
compared by value, so that equal loops are equal wherever they were made. What the parts mean together is
checked by `verify`.

Scalars are trees, evaluated in the type they have: each operation rounds (floats) or wraps around (integers),
and all operands are evaluated, those of `and`, `or` and `select` too: what must not be loaded stands in an
IfThenElse. A value that is used twice is stored in a buffer of shape (), which a code generator keeps in a
register. Whether products and sums may be contracted is an attribute of the function, not of the scalar.

Blocks may be long. Nesting is limited to DEEPEST, because == and hash() follow it by recursion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, TypeAlias

from intarsia.ir.attributes import NO_ATTRS, Attrs
from intarsia.ir.dtype import DType
from intarsia.ir.span import Span

DEEPEST: Final = 64
"""How deep statements may stand inside each other, and scalars inside each other."""


class ForKind(StrEnum):
    """How the iterations of a loop are carried out.

    BLOCK and THREAD are those of a GPU kernel: a BLOCK loop stands inside no other loop, and its body is one
    THREAD loop, with allocations in SHARED memory around it. The threads of a block run at the same time, in
    any order between two barriers; blocks run in any order. Two threads that touch one element, at least one
    of them writing, do so on different sides of a barrier of their block.
    """

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    BLOCK = "block"
    THREAD = "thread"


class ArithOp(StrEnum):
    """Operators on scalars, named as they print.

    DIV is for floats. FLOOR_DIV and FLOOR_MOD are for integers and round towards minus infinity, as Python's
    `//` and `%`; dividing by zero is undefined. MIN and MAX give NaN if an operand is NaN, as ONNX's.
    Comparisons with NaN are false, but for NE. SELECT is `second if first else third`.
    """

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOOR_DIV = "floordiv"
    FLOOR_MOD = "mod"
    MIN = "min"
    MAX = "max"
    LT = "<"
    LE = "<="
    EQ = "=="
    NE = "!="
    AND = "and"
    OR = "or"
    NOT = "not"
    SELECT = "select"


class MemoryScope(StrEnum):
    """Where a buffer lives.

    THREAD is scratch of one thread, SHARED memory of the threads of one BLOCK iteration. REGISTER promises
    that every index is constant once unrolled and vectorised loops are expanded, so that its elements need no
    memory. No scope changes what is computed.
    """

    GLOBAL = "global"
    THREAD = "thread"
    SHARED = "shared"
    REGISTER = "register"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A dense row-major array in memory; two buffers of one function never overlap.

    Attributes:
        name: Its name, unique in its function.
        shape: Extents, outermost first; () is a scalar.
        dtype: Element type, one of `scalar_types.LOOP_DTYPES`.
        scope: Memory scope: memory, that of one block or thread, or registers; parameters are in memory.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    scope: MemoryScope = MemoryScope.GLOBAL

    def __hash__(self) -> int:
        return hash(self.name)  # few buffers have one name, and hashing all fields takes much longer

    def __str__(self) -> str:
        scope = "" if self.scope is MemoryScope.GLOBAL else f", {self.scope.value}"
        return f"Buffer[{self.shape}, {self.dtype.value}{scope}]"


@dataclass(frozen=True, slots=True)
class LoopVar:
    """The counter of an enclosing loop, an int64 from 0 to the loop's extent minus 1."""

    name: str

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A number, brought to its type where that can be: floats are rounded, 2.0 is 2 for an int32.

    NaN equals NaN, and 0.0 does not equal -0.0.
    """

    value: int | float | bool
    dtype: DType

    def __post_init__(self) -> None:
        """Bring the value to its type; what has no place there stays, for `verify` to complain about."""
        if self.dtype is DType.INT64 and type(self.value) is int:  # nearly all
            return
        object.__setattr__(self, "value", _in_type(self.value, self.dtype))

    @property
    def is_in_type(self) -> bool:
        """Whether the type has such a value."""
        match self.value:
            case bool():
                return self.dtype is DType.BOOL
            case int():
                return self.dtype.is_integer and _in_range(self.value, self.dtype)
            case _:
                return self.dtype.is_float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal) or self.dtype is not other.dtype:
            return False
        if type(self.value) is int and type(other.value) is int:  # nearly all, and much faster than texts
            return self.value == other.value
        return self.key == other.key

    def __hash__(self) -> int:
        return hash(self.value) if self.value == self.value else 0  # NaN has a hash for each object

    @property
    def key(self) -> tuple[str, str]:
        """What equality compares, as text: the type and the exact value."""
        value = self.value
        return self.dtype.value, value.hex() if isinstance(value, float) else repr(value)


def _in_type(value: float, dtype: DType) -> int | float | bool:
    if dtype.is_float:
        return _rounded(value, dtype)
    if dtype.is_integer and value == value // 1:
        return int(value)
    if dtype is DType.BOOL and value in (0, 1):
        return bool(value)
    return value


def _rounded(value: float, dtype: DType) -> float:
    import numpy as np

    try:
        value = float(value)
    except OverflowError:
        value = float("inf") if value > 0 else float("-inf")
    with np.errstate(over="ignore"):
        return value if dtype is DType.FLOAT64 else float(dtype.numpy.type(value))


def _in_range(value: int, dtype: DType) -> bool:
    import ml_dtypes

    limits = ml_dtypes.iinfo(dtype.numpy)
    return bool(limits.min <= value <= limits.max)


@dataclass(frozen=True, slots=True)
class Load:
    """An element of a buffer; one int64 index a dimension, each inside its extent."""

    buffer: Buffer
    indices: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Arith:
    """An operator on scalars of one type; comparisons give bool, `select` takes a bool first."""

    op: ArithOp
    operands: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """A scalar as another element type, as ONNX's Cast: to nearest even, from float to integer towards zero.

    Integers wrap around; a float outside the range of an integer type is undefined. All but zero is true.
    """

    value: Scalar
    dtype: DType


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A mathematical function by name, one of `scalar_types.INTRINSICS`; the result has the type given."""

    name: str
    args: tuple[Scalar, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Store:
    """`buffer[indices] = value`, with indices as for Load."""

    buffer: Buffer
    indices: tuple[Scalar, ...]
    value: Scalar


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in order; a block in a block, or of one statement, is the same as without."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class For:
    """A loop from 0 to `extent` minus 1; a kind other than serial promises that the order does not matter.

    Attributes:
        var: Counter.
        extent: Number of iterations, or the maximum of it if there is a count.
        body: Statement that is executed.
        kind: Order of the iterations; a loop with a count is serial or parallel.
        count: Number of iterations, an int64 from 0 to `extent`, where it is known at run time only; it is
            evaluated once, before the loop. None if it is `extent`.
    """

    var: LoopVar
    extent: int
    body: Statement
    kind: ForKind = ForKind.SERIAL
    count: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Allocate:
    """A buffer that lives as long as the body runs; its elements start undefined.

    Each iteration of a loop around it has its own.
    """

    buffer: Buffer
    body: Statement


@dataclass(frozen=True, slots=True)
class IfThenElse:
    """A guard around a statement; the condition is a bool."""

    cond: Scalar
    then: Statement
    otherwise: Statement | None = None


@dataclass(frozen=True, slots=True)
class Barrier:
    """A statement that no thread of a block passes before all of them have reached it.

    It stands in a THREAD loop, and in no guard that threads of one block may decide differently.
    """


Scalar: TypeAlias = LoopVar | Literal | Load | Arith | Cast | Intrinsic
Statement: TypeAlias = Block | For | Store | Allocate | IfThenElse | Barrier


@dataclass(frozen=True, slots=True, weakref_slot=True)
class PrimFunc:
    """A loop function: nested loops over buffers that the caller provides.

    Attributes:
        params: The buffers, inputs and outputs, in calling order.
        body: Statement that is executed.
        attrs: Facts such as the number of threads.
        span: Location in the source that it was written in.
    """

    params: tuple[Buffer, ...]
    body: Statement
    attrs: Attrs = NO_ATTRS
    span: Span | None = None


def with_prim_func_fields(prim_func: PrimFunc, **changes: Any) -> PrimFunc:
    """Copy-on-write for loop functions: the same object if no field gets another value."""
    after = replace(prim_func, **changes)
    return prim_func if after == prim_func else after
