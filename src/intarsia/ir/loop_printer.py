"""The text form of loop functions: complete (`parse_module` reads it back), linear, without recursion.

    def prim @scale(x: Buffer[(4, 8), float32], y: Buffer[(4, 8), float32]) attributes {threads=2} {
      for parallel i in 4 {
        for j in 8 {
          y[i, j] = x[i, j] * 2.0f32;
        }
      }
    }

A loop whose number of iterations is known at run time only says the maximum of it, and how it is computed:
`for i in 1024 count rows[] floordiv 8 {`.

Whole numbers are int64 where no type is given; the others carry theirs (`2.0f32`, `7u8`). A type applied like
a function is a cast; an intrinsic names its type where that is not the type of its first argument:
`exp[float32](1.0f64)`. A buffer that is not in the scope global names its scope last: `alloc t: Buffer[(4,),
float32, thread] {`.
"""

from __future__ import annotations

from typing import Final, assert_never

from intarsia.ir.listing import Listing
from intarsia.ir.literal import name_text, span_text
from intarsia.ir.loop_literal import loop_name_text, number_text
from intarsia.ir.loop_walk import Event, operands, scalar_post_order, walk
from intarsia.ir.prim_func import (
    Allocate,
    AnyKernelStatement,
    Arith,
    ArithOp,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
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
    Mma,
    PrimFunc,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.scalar_types import scalar_dtype

HEAD: Final = -1
"""The number of a function's head in a listing, where statements have that of their visit."""
_DEEPEST_INDENT: Final = 20
_ATOM: Final = 9
_BINDS: Final = {
    ArithOp.OR: 1,
    ArithOp.AND: 2,
    ArithOp.NOT: 3,
    **dict.fromkeys((ArithOp.LT, ArithOp.LE, ArithOp.EQ, ArithOp.NE), 4),
    **dict.fromkeys((ArithOp.ADD, ArithOp.SUB), 5),
    **dict.fromkeys((ArithOp.MUL, ArithOp.DIV, ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD), 6),
}
"""How strongly an operator binds. A chain of equals is read from the left; comparisons form none."""


def list_prim_func(name: str, function: PrimFunc, listing: Listing) -> None:
    """Write a loop function into a listing, which records the line of each statement: stands."""
    listing.statement_line[name, HEAD] = len(listing.lines)
    params = ", ".join(map(_buffer_text, function.params))
    attrs = f" attributes {{{listing.attrs_text(function.attrs)}}}" if function.attrs else ""
    span = f" {span_text(function.span)}" if function.span is not None and listing.show_spans else ""
    listing.lines.append(f"def prim @{name_text(name)}({params}){attrs}{span} {{")
    for visit in walk(function.body):
        match visit.event:
            case Event.ENTER:
                listing.statement_line[name, visit.number] = len(listing.lines)
                line = _head(visit.statement)
            case Event.ELSE:
                line = "} else {"
            case Event.LEAVE:
                line = "}"
        listing.lines.append("  " * min(visit.depth + 1, _DEEPEST_INDENT) + line)
    listing.lines.append("}")


def scalar_text(root: Scalar) -> str:
    """A scalar as text, with the parentheses that it needs."""
    stack: list[tuple[str, int]] = []  # texts of the operands, and how strongly each binds
    for scalar, _ in scalar_post_order(root):
        count = len(operands(scalar))
        below = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        stack.append(_combined(scalar, below))
    return stack[0][0]


def _head(statement: Statement) -> str:
    match statement:
        case Store():
            return f"{_element_text(statement.buffer, statement.indices)} = {scalar_text(statement.value)};"
        case For():
            kind = "" if statement.kind is ForKind.SERIAL else f"{statement.kind.value} "
            count = "" if statement.count is None else f" count {scalar_text(statement.count)}"
            return f"for {kind}{loop_name_text(statement.var.name)} in {statement.extent}{count} {{"
        case Allocate():
            return f"alloc {_buffer_text(statement.buffer)} {{"
        case IfThenElse():
            return f"if {scalar_text(statement.cond)} {{"
        case KernelStatement():
            return _kernel_head(statement)
        case Block():
            raise AssertionError("blocks are looked through")
        case _:
            assert_never(statement)


def _mma_text(mma: Mma) -> str:
    factors = f"{'signed ' if mma.is_left_signed else ''}{scalar_text(mma.left)} * {scalar_text(mma.right)}"
    return f"mma {scalar_text(mma.sums)} += {factors}{' transposed' if mma.is_right_transposed else ''};"


def _kernel_head(statement: AnyKernelStatement) -> str:
    match statement:
        case Barrier():
            return "barrier;"
        case AsyncCopy():
            return _copy_text(statement)
        case AsyncCommit():
            return "async commit;"
        case AsyncWait():
            return f"async wait {statement.pending};"
        case Mma():
            return _mma_text(statement)
        case _:
            assert_never(statement)


def _copy_text(copy: AsyncCopy) -> str:
    valid = "" if copy.valid is None else f" valid {scalar_text(copy.valid)}"
    written = scalar_text(copy.target)
    return f"async copy {written} = {scalar_text(copy.source)} width {copy.width}{valid};"


def _buffer_text(buffer: Buffer) -> str:
    return f"{loop_name_text(buffer.name)}: {buffer}"


def _element_text(buffer: Buffer, indices: tuple[Scalar, ...]) -> str:
    return f"{loop_name_text(buffer.name)}[{', '.join(map(scalar_text, indices))}]"


def _combined(scalar: Scalar, below: list[tuple[str, int]]) -> tuple[str, int]:
    inside = ", ".join(text for text, _ in below)
    match scalar:
        case LoopVar():
            return loop_name_text(scalar.name), _ATOM
        case Literal():
            return number_text(scalar), _ATOM
        case Load():
            return f"{loop_name_text(scalar.buffer.name)}[{inside}]", _ATOM
        case Cast():
            return f"{scalar.dtype.value}({inside})", _ATOM
        case Intrinsic():
            is_usual = scalar.args and scalar.dtype is scalar_dtype(scalar.args[0])
            own_type = "" if is_usual else f"[{scalar.dtype.value}]"
            return f"{loop_name_text(scalar.name)}{own_type}({inside})", _ATOM
        case Arith():
            return _arithmetic(scalar.op, below, inside)
        case _:
            assert_never(scalar)


def _arithmetic(op: ArithOp, below: list[tuple[str, int]], inside: str) -> tuple[str, int]:
    binds = _BINDS.get(op, _ATOM)
    if op is ArithOp.NOT and len(below) == 1:
        return f"not {_within(below[0], binds)}", binds
    if binds == _ATOM:
        return f"{op.value}({inside})", _ATOM
    if op is ArithOp.NOT or len(below) != 2:  # verify complains about the number of operands
        return f'"{op.value}"({inside})', _ATOM
    is_chain = op not in (ArithOp.LT, ArithOp.LE, ArithOp.EQ, ArithOp.NE)
    left = _within(below[0], binds if is_chain else binds + 1)
    return f"{left} {op.value} {_within(below[1], binds + 1)}", binds


def _within(operand: tuple[str, int], least: int) -> str:
    text, binds = operand
    return text if binds >= least else f"({text})"
