"""Loop functions and their language, declared on this page (DESIGN section 8).

    PrimFunc  = parameters (buffers), a statement, attributes
    Statement = Block | For | Store | Allocate | IfThenElse | KernelStatement
    KernelStatement = Barrier | AsyncCopy | AsyncCommit | AsyncWait | Mma
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

    A GPU kernel is a BLOCK loop in no other loop, whose body is a THREAD loop, with allocations in SHARED
    memory around it. Blocks run in any order, and so do their threads between two barriers: one is between
    two accesses to an element by different threads, if one writes. A thread runs VIRTUAL iterations in turn.
    """

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    BLOCK = "block"
    THREAD = "thread"
    VIRTUAL = "virtual"


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
    """A buffer that lives while the body runs, another one in each iteration; it starts undefined."""

    buffer: Buffer
    body: Statement


@dataclass(frozen=True, slots=True)
class IfThenElse:
    """A guard around a statement; the condition is a bool."""

    cond: Scalar
    then: Statement
    otherwise: Statement | None = None


class KernelStatement:
    """A statement of a GPU thread that holds no other statement."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Barrier(KernelStatement):
    """A statement that no thread of a block passes before all of them have reached it.

    It stands in a THREAD loop, and in no guard that threads of one block may decide differently.
    """


@dataclass(frozen=True, slots=True)
class AsyncCopy(KernelStatement):
    """The start of a copy of some elements of a row from memory into shared memory.

    The thread goes on. The elements are written at some time until it has waited for their group: nothing
    touches them before, and other threads need a barrier after the wait. Both rows start at a multiple of
    the copy's size in bytes, which is 4, 8 or 16. The kernel does not write what is copied.

    Attributes:
        target: First element that is written, of a buffer in shared memory.
        source: First element that is read, of a buffer in memory.
        width: Number of elements.
        valid: Number of elements that are read, an int64 from 0 to `width`; zeros are written for the others.
            None if it is `width`.
    """

    target: Load
    source: Load
    width: int
    valid: Scalar | None = None

    @property
    def size(self) -> int:
        """Number of bytes that are written."""
        return self.width * self.target.buffer.dtype.numpy.itemsize


@dataclass(frozen=True, slots=True)
class AsyncCommit(KernelStatement):
    """The end of a group of copies: those that the thread started since its last group, if any."""


@dataclass(frozen=True, slots=True)
class AsyncWait(KernelStatement):
    """A statement that a thread passes when the copies of its groups are done, but for the last ones.

    It stands in the same guards as a barrier may. A thread waits for all its copies before it ends.

    Attributes:
        pending: Number of its last groups that the thread does not wait for.
    """

    pending: int = 0


@dataclass(frozen=True, slots=True)
class Mma(KernelStatement):
    """A product of two tiles that the threads of a warp add to a tile of 16 by 8 sums together.

    Thread `t` of the warp keeps four sums in a row of its buffer: `e` has row `t / 4 + 8 * (e / 2)`, column
    `t mod 4 * 2 + e mod 2`, quotients rounded down. All name the same tiles of factors, whose rows start at a
    multiple of 16 bytes. Products of 16-bit floats are exact; int32 are two bfloat16 (`dot_bf16`), or
    four bytes if sums are int32 (`dot_u8s8`); float32 are tf32. How sums are rounded is not defined.

    Attributes:
        sums: First of the thread's four sums.
        left: First element of the left factor's tile in shared memory, whose rows are rows of a matrix.
        right: First element of the right factor's tile in shared memory, likewise.
        is_right_transposed: Whether the rows of the right tile are 8 columns of `depth` elements.
        is_left_signed: Whether bytes of the left factor are the signed ones, and those of the right unsigned.
    """

    sums: Load
    left: Load
    right: Load
    is_right_transposed: bool = False
    is_left_signed: bool = False

    @property
    def depth(self) -> int:
        """Number of columns of the left tile, and of rows of the right one: 32 bytes."""
        return 32 // self.left.buffer.dtype.numpy.itemsize


Scalar: TypeAlias = LoopVar | Literal | Load | Arith | Cast | Intrinsic
AnyKernelStatement: TypeAlias = Barrier | AsyncCopy | AsyncCommit | AsyncWait | Mma
Statement: TypeAlias = Block | For | Store | Allocate | IfThenElse | AnyKernelStatement


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
