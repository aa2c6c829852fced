"""A loop function as Python source: one line an operation, so that running it walks no objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import Event, inner_scalars, operands, walk
from intarsia.ir.prim_func import (
    Allocate,
    AnyKernelStatement,
    Arith,
    ArithOp,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
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
from intarsia.ir.scalar_types import scalar_dtype
from intarsia.ir.warp import MMA_SUMS
from intarsia.native.tir.mma_site import MmaSite
from intarsia.native.tir.scalar_math import (
    cast_function,
    floor_divided,
    floor_remainder,
    greater,
    intrinsic_function,
    limits,
    number_of_literal,
    smaller,
    wrapped,
)
from intarsia.native.tir.thread_races import AccessCheck, CopySite, KernelClock, SharedTile
from intarsia.support.errors import ExecutionError

_LOOPS_IN_A_FUNCTION: Final = 12
"""Python nests at most 20 loops in one function: what is deeper becomes a function of its own."""
_INFIX: Final = frozenset(
    {
        *(ArithOp.ADD, ArithOp.SUB, ArithOp.MUL, ArithOp.DIV, ArithOp.AND, ArithOp.OR),
        *(ArithOp.LT, ArithOp.LE, ArithOp.EQ, ArithOp.NE),
    }
)
_CALLED: Final[dict[ArithOp, Callable[..., Any]]] = {
    ArithOp.FLOOR_DIV: floor_divided,
    ArithOp.FLOOR_MOD: floor_remainder,
    ArithOp.MIN: smaller,
    ArithOp.MAX: greater,
}
_CAN_LEAVE: Final = frozenset({ArithOp.ADD, ArithOp.SUB, ArithOp.MUL, ArithOp.FLOOR_DIV})
"""Operators whose result on integers may be outside of their type."""


def python_function(prim_func: PrimFunc) -> Callable[..., None]:
    """Return a Python function that runs a loop function on flat lists, one for each parameter, in place.

    It raises ExecutionError where an index is outside of its buffer, where threads race for an element, and
    for what else is undefined.
    """
    writer = _Writer()
    names = [writer.bind(param) for param in prim_func.params]
    writer.lines.append(f"def run({', '.join(names)}):")
    writer.lines.append(" pass")
    for visit in walk(prim_func.body):
        writer.visit(visit.statement, visit.event)
    code = compile("\n".join(writer.lines), "<loop function>", "exec")
    exec(code, writer.values)  # noqa: S102  # the text stands above
    function: Callable[..., None] = writer.values["run"]
    return function


def raise_out_of_bounds(buffer: Buffer, dimension: int, index: int) -> None:
    """Raise the error for an index outside of its buffer.

    Raises:
        ExecutionError: Always.
    """
    raise ExecutionError(
        f"index {dimension} of {buffer.name} is {index}; expected 0 to {buffer.shape[dimension] - 1}, "
        f"since its extent is {buffer.shape[dimension]}",
        help=f"{buffer.name} is {buffer}",
    )


@dataclass
class _Writer:
    """The lines so far, and the values of the names in them."""

    lines: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=lambda: {"raise_out_of_bounds": raise_out_of_bounds})
    names: dict[Buffer | LoopVar, list[str]] = field(default_factory=dict)
    constants: dict[object, str] = field(default_factory=dict)
    indent: int = 1
    loops: int = 0
    temporaries: int = 0
    bound: int = 0
    checks: dict[Buffer, str] = field(default_factory=dict)
    clock: str = ""
    block: str = ""
    barriers: int = 0
    in_thread: bool = False

    def emit_line(self, text: str) -> None:
        self.lines.append(" " * self.indent + text)

    def bind(self, item: Buffer | LoopVar) -> str:
        self.bound += 1
        name = f"{'b' if isinstance(item, Buffer) else 'i'}{self.bound}"
        self.names.setdefault(item, []).append(name)
        return name

    def bind_constant(self, value: object) -> str:
        """Bind a name to a value that is no Python number; return the name."""
        name = self.constants.setdefault(("at", id(value)), f"c{len(self.constants)}")
        self.values[name] = value
        return name

    def visit(self, statement: Statement, event: Event) -> None:
        self.temporaries = 0
        match statement, event:
            case Store(), Event.ENTER:
                self.emit_store(statement)
            case KernelStatement(), Event.ENTER:
                self.emit_kernel_statement(statement)
            case For(kind=ForKind.THREAD), _:
                self.enter_threads(statement) if event is Event.ENTER else self.leave_threads(statement)
            case For(), Event.ENTER:
                self.enter_kernel(statement) if statement.kind is ForKind.BLOCK else self.enter_loop(
                    statement
                )
            case For(), Event.LEAVE:
                self.leave_loop(statement)
            case Allocate(), Event.ENTER:
                self.emit_allocation(statement.buffer)
            case Allocate(), Event.LEAVE:
                self.names[statement.buffer].pop()
            case IfThenElse(), _:
                self.visit_guard(statement, event)
            case _:
                raise AssertionError(statement)

    def emit_kernel_statement(self, statement: AnyKernelStatement) -> None:
        match statement:
            case Barrier():
                self.barriers += 1
                self.emit_line(f"yield {self.barriers}")
            case AsyncCopy():
                self.emit_copy(statement)
            case AsyncCommit():
                self.emit_line(f"{self.clock}.commit_copies()")
            case AsyncWait():
                self.emit_line(f"{self.clock}.wait_for_copies({statement.pending})")
            case Mma():
                self.emit_mma(statement)
            case _:
                assert_never(statement)

    def visit_guard(self, guard: IfThenElse, event: Event) -> None:
        if event is not Event.ENTER:
            self.indent -= 1
        if event is not Event.LEAVE:
            head = f"if {self.emit_scalar(guard.cond)}:" if event is Event.ENTER else "else:"
            self.emit_line(head)
            self.indent += 1
            self.emit_line("pass")

    def emit_store(self, statement: Store) -> None:
        indices = [self.emit_scalar(index) for index in statement.indices]
        offset = self.emit_offset(statement.buffer, indices)
        value = self.emit_scalar(statement.value)
        if self.in_thread and statement.buffer in self.checks:
            self.emit_line(f"{self.checks[statement.buffer]}.note_write({offset})")
        self.emit_line(f"{self.names[statement.buffer][-1]}[{offset}] = {value}")

    def emit_copy(self, copy: AsyncCopy) -> None:
        """Emit the start of an asynchronous copy; what is not read need not be inside of its buffer."""
        buffer, source = copy.target.buffer, copy.source.buffer
        indices = [self.emit_scalar(index) for index in copy.target.indices]
        offset = self.emit_row(buffer, indices, str(copy.width))
        indices = [self.emit_scalar(index) for index in copy.source.indices]
        valid = str(copy.width) if copy.valid is None else self.emit_scalar(copy.valid)
        self.emit_line(f"if {valid} > 0:")
        self.indent += 1
        start = self.emit_row(source, indices, valid)
        self.indent -= 1
        site = self.bind_constant(CopySite(copy.width, copy.size // copy.width, _zero(buffer.dtype)))
        target = f"{self.checks[buffer]}, {self.names[buffer][-1]}, {offset}"
        arguments = f"{target}, {self.names[source][-1]}, {start}, {valid}, {site}"
        self.emit_line(f"{self.clock}.start_copy({arguments})")

    def emit_mma(self, mma: Mma) -> None:
        """Emit the product of a warp: what one thread adds to its sums."""
        site, kind = MmaSite.of(mma), self.bind_constant(SharedTile)
        indices = [self.emit_scalar(index) for index in mma.sums.indices]
        sums = f"{self.names[mma.sums.buffer][-1]}, {self.emit_row(mma.sums.buffer, indices, str(MMA_SUMS))}"
        tiles = []
        for element, shape in ((mma.left, site.left), (mma.right, site.right)):
            buffer = element.buffer
            indices = [self.emit_scalar(index) for index in element.indices]
            offset = self.emit_row(buffer, indices, str(shape.columns))
            self.emit_offset(buffer, [*indices[:-2], f"{indices[-2]} + {shape.rows - 1}", indices[-1]])
            tiles.append(f"{kind}({self.checks[buffer]}, {self.names[buffer][-1]}, {offset})")
        self.emit_line(f"{self.clock}.multiply({sums}, {', '.join(tiles)}, {self.bind_constant(site)})")

    def emit_row(self, buffer: Buffer, indices: list[str], count: str) -> str:
        """Emit checks of the indices of `count` elements of a row; return the position of the first one."""
        offset, last = self.emit_offset(buffer, indices), f"{indices[-1]} + {count} - 1"
        report = f"raise_out_of_bounds({self.bind_constant(buffer)}, {len(indices) - 1}, {last})"
        self.emit_line(f"if {last} >= {buffer.shape[-1]}: {report}")
        return offset

    def check_accesses(self, buffer: Buffer) -> None:
        """Emit a new check for races over a buffer."""
        self.checks[buffer] = f"check{self.names[buffer][-1]}"
        kind = self.bind_constant(AccessCheck)
        self.emit_line(f"{self.checks[buffer]} = {kind}({buffer.name!r}, {self.clock})")

    def enter_kernel(self, loop: For) -> None:
        """Enter a loop over blocks: what they write in memory from outside is checked for races."""
        self.clock = f"clock{self.bound}"
        self.emit_line(f"{self.clock} = {self.bind_constant(KernelClock)}()")
        self.checks = {}
        for buffer in dict.fromkeys(
            visit.statement.buffer
            for visit in walk(loop)
            if visit.event is Event.ENTER and isinstance(visit.statement, Store)
        ):
            if self.names.get(buffer):
                self.check_accesses(buffer)
        self.enter_loop(loop)
        self.block = self.names[loop.var][-1]

    def enter_threads(self, loop: For) -> None:
        name = self.bind(loop.var)
        self.emit_line(f"def thread_{name}({name}):")
        self.indent += 1
        self.emit_line("if False: yield 0")
        self.in_thread = True

    def leave_threads(self, loop: For) -> None:
        name = self.names[loop.var].pop()
        self.indent -= 1
        self.in_thread = False
        self.emit_line(f"{self.clock}.run_threads({self.block}, {loop.extent}, thread_{name})")

    def emit_allocation(self, buffer: Buffer) -> None:
        size = _element_count(buffer.shape)
        fill = self.bind_constant(sentinel(buffer.dtype))
        name = self.bind(buffer)
        self.emit_line(f"{name} = [{fill}] * {size}")
        if buffer.scope is MemoryScope.SHARED:
            self.check_accesses(buffer)

    def leave_loop(self, loop: For) -> None:
        self.names[loop.var].pop()
        self.indent -= 1
        self.loops -= 1
        # The deepest loops of a function are complete: call the function that holds them.
        if self.loops % _LOOPS_IN_A_FUNCTION == 0 and self.loops:
            self.indent -= 1
            self.emit_line(f"{'yield from ' if self.in_thread else ''}inner{self.loops}()")

    def enter_loop(self, loop: For) -> None:
        if self.loops % _LOOPS_IN_A_FUNCTION == 0 and self.loops:
            self.emit_line(f"def inner{self.loops}():")
            self.indent += 1
            if self.in_thread:
                self.emit_line("if False: yield 0")
        self.loops += 1
        count = str(loop.extent) if loop.count is None else self.emit_scalar(loop.count)
        name = self.bind(loop.var)
        self.emit_line(f"for {name} in range({count}):")
        self.indent += 1
        self.emit_line("pass")

    def emit_offset(self, buffer: Buffer, indices: list[str]) -> str:
        """Emit checks of the indices of an element; return its position in the flat list."""
        terms = []
        for dimension, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            stride = _element_count(buffer.shape[dimension + 1 :])
            name = self.bind_constant(buffer)
            report = f"raise_out_of_bounds({name}, {dimension}, {index})"
            self.emit_line(f"if not 0 <= {index} < {extent}: {report}")
            terms.append(index if stride == 1 else f"{index} * {stride}")
        return " + ".join(terms) or "0"

    def emit_scalar(self, root: Scalar) -> str:
        """Emit lines that compute a scalar; return the name of its value."""
        stack: list[str] = []
        for scalar in inner_scalars(root):
            count = len(operands(scalar))
            below = stack[len(stack) - count :]
            del stack[len(stack) - count :]
            stack.append(self.emit_operation(scalar, below))
        return stack[0]

    def emit_operation(self, scalar: Scalar, below: list[str]) -> str:
        match scalar:
            case LoopVar():
                return self.names[scalar][-1]
            case Literal():
                if isinstance(scalar.value, bool) or not scalar.dtype.is_float:
                    return f"({scalar.value})"
                return self.bind_constant(number_of_literal(scalar))
            case Load():
                offset = self.emit_offset(scalar.buffer, below)
                if self.in_thread and scalar.buffer in self.checks:
                    self.emit_line(f"{self.checks[scalar.buffer]}.note_read({offset})")
                return self.emit_temporary(f"{self.names[scalar.buffer][-1]}[{offset}]")
            case Arith():
                return self.emit_arithmetic(scalar, below)
            case Cast():
                source = scalar_dtype(scalar.value)
                assert source is not None, "loop functions are verified before they run"
                return self.emit_call(cast_function(source, scalar.dtype), below)
            case Intrinsic():
                return self.emit_call(intrinsic_function(scalar.name, scalar.dtype), below)
            case _:
                assert_never(scalar)

    def emit_arithmetic(self, scalar: Arith, below: list[str]) -> str:
        match scalar.op:
            case ArithOp.NOT:
                return self.emit_temporary(f"not {below[0]}")
            case ArithOp.SELECT:
                return self.emit_temporary(f"{below[1]} if {below[0]} else {below[2]}")
            case op if op in _INFIX:
                result = self.emit_temporary(f"{below[0]} {scalar.op.value} {below[1]}")
            case _:
                result = self.emit_call(_CALLED[scalar.op], below)
        dtype = scalar_dtype(scalar)
        if scalar.op in _CAN_LEAVE and dtype is not None and dtype.is_integer:
            low, high = limits(dtype)
            again = f"{self.bind_constant(wrapped)}({result}, {self.bind_constant(dtype)})"
            self.emit_line(f"if not {low} <= {result} <= {high}: {result} = {again}")
        return result

    def emit_call(self, function: Callable[..., Any], below: list[str]) -> str:
        return self.emit_temporary(f"{self.bind_constant(function)}({', '.join(below)})")

    def emit_temporary(self, text: str) -> str:
        name = f"t{self.temporaries}"
        self.temporaries += 1
        self.emit_line(f"{name} = {text}")
        return name


def _element_count(shape: tuple[int, ...]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def _zero(dtype: DType) -> object:
    """Return zero as the interpreter holds it."""
    return number_of_literal(Literal(0, dtype)) if dtype.is_float else False if dtype is DType.BOOL else 0


def sentinel(dtype: DType) -> object:
    """Return the value of undefined elements: NaN, or a rare number beyond the bounds of most buffers."""
    if dtype.is_float:
        return dtype.numpy.type(float("nan"))
    if dtype is DType.BOOL:
        return True
    low, high = limits(dtype)
    return low + (high - low) // 3
