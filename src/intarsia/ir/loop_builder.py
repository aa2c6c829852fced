"""What the grammar's rules for loop functions build; names are resolved in the order of the text."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from intarsia.ir.attributes import NO_ATTRS, Attrs
from intarsia.ir.literal import name_of, span_of
from intarsia.ir.loop_literal import buffer_of, dtype_of, number_of
from intarsia.ir.prim_func import (
    Allocate,
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
from intarsia.ir.text_error import did_you_mean
from intarsia.ir.value_builder import Children, ValueBuilder

if TYPE_CHECKING:
    from lark import Token


class LoopBuilder(ValueBuilder):
    """Builds loop functions; their names are no names of graph functions."""

    def begin(self, source: str, constants: tuple[npt.NDArray[Any], ...]) -> None:
        """Forget everything, and be ready for a text."""
        super().begin(source, constants)
        self.buffers: dict[str, tuple[Buffer, Token]] = {}
        self.loop_vars: dict[str, Token] = {}

    def loop_open(self, children: Children) -> Token:
        """`def prim @name(`."""
        token: Token = children[0]
        self.buffers, self.loop_vars = {}, {}
        return token

    def loop_definition(self, children: Children) -> tuple[Token, PrimFunc]:
        """A loop function and its name."""
        token, params, attrs, span, body = children
        attributes = Attrs(attrs) if attrs else NO_ATTRS
        place = None if span is None else self.read(span_of, span, "a span")
        return token, PrimFunc(tuple(params or ()), body, attributes, place)

    loop_params = loop_scalars = ValueBuilder.grow

    def loop_param(self, children: Children) -> Buffer:
        """A buffer that the caller provides."""
        return self.introduced(children[0])

    def loop_buffer(self, children: Children) -> tuple[Token, Buffer]:
        """`name: Buffer[(4, 8), float32]`, not visible yet."""
        token, _, text = children
        return token, self.read(partial(buffer_of, self.loop_text(token)), text, "a buffer type")

    def introduced(self, named: tuple[Token, Buffer]) -> Buffer:
        """A buffer, visible from here on."""
        token, buffer = named
        if buffer.name in self.buffers:
            line = self.buffers[buffer.name][1].line
            self.fail(token, f"the buffer {token} is already defined in line {line}")
        self.buffers[buffer.name] = buffer, token
        return buffer

    def loop_name(self, children: Children) -> Token:
        """A name, plain or quoted."""
        token: Token = children[0]
        return token

    def loop_text(self, token: Token) -> str:
        """The name that is meant."""
        return self.read(name_of, token, "a name")

    def buffer_at(self, token: Token) -> Buffer:
        """The buffer of that name."""
        name = self.loop_text(token)
        if name not in self.buffers:
            self.fail(token, f"there is no buffer {token} here", did_you_mean("", name, self.buffers))
        return self.buffers[name][0]

    # Statements

    def loop_block(self, children: Children) -> Statement:
        """`{ statements }`; a single one stands for itself."""
        statements: list[Statement] = children[0]
        return statements[0] if len(statements) == 1 else Block(tuple(statements))

    def loop_statements(self, children: Children) -> list[Statement]:
        """Statements; the list grows from left to right."""
        if not children:
            return []
        statements: list[Statement] = children[0]
        statements.append(children[1])
        return statements

    def loop_store(self, children: Children) -> Store:
        """`y[i, j] = value;`."""
        token, indices, value = children
        return Store(self.buffer_at(token), tuple(indices or ()), value)

    def for_head(self, children: Children) -> tuple[LoopVar, int, ForKind, Scalar | None]:
        """`for parallel i in 4`, after which the variable can be used."""
        kind, token, extent, count = children
        name = self.loop_text(token)
        if name in self.loop_vars:
            self.fail(token, f"the loop of line {self.loop_vars[name].line} has the variable {token} already")
        self.loop_vars[name] = token
        return LoopVar(name), int(extent), ForKind.SERIAL if kind is None else ForKind(str(kind)), count

    def loop_for(self, children: Children) -> For:
        """A loop, its variable out of sight again."""
        (var, extent, kind, count), body = children
        del self.loop_vars[var.name]
        return For(var, extent, body, kind, count)

    def alloc_head(self, children: Children) -> Buffer:
        """`alloc t: Buffer[...]`, after which the buffer can be used."""
        return self.introduced(children[0])

    def loop_allocate(self, children: Children) -> Allocate:
        """An allocation, its buffer out of sight again."""
        buffer, body = children
        del self.buffers[buffer.name]
        return Allocate(buffer, body)

    def loop_if(self, children: Children) -> IfThenElse:
        """`if cond { ... } else { ... }`."""
        return IfThenElse(*children)

    def loop_barrier(self, _: Children) -> Barrier:
        """`barrier;`."""
        return Barrier()

    def loop_copy(self, children: Children) -> AsyncCopy:
        """`async copy row[t] = x[b, t] width 4 valid n;`."""
        written, source, width, valid = children
        return AsyncCopy(written, source, int(width), valid)

    def loop_commit(self, _: Children) -> AsyncCommit:
        """`async commit;`."""
        return AsyncCommit()

    def loop_wait(self, children: Children) -> AsyncWait:
        """`async wait 1;`."""
        return AsyncWait(int(children[0]))

    def loop_mma(self, children: Children) -> Mma:
        """`mma sums[0] += signed left[i, k] * right[k, j] transposed;`, without these words or with them."""
        sums, _, signed, left, right, transposed = children
        return Mma(sums, left, right, transposed is not None, signed is not None)

    def loop_element(self, children: Children) -> Load:
        """`x[i, j]` as a place in memory."""
        return self.loop_load(children)

    # Scalars

    def loop_number(self, children: Children) -> Literal:
        """`3`, `2.0f32`, `true`."""
        return self.read(number_of, children[0], "a number")

    def loop_var(self, children: Children) -> LoopVar:
        """The counter of a loop around it."""
        token = children[0]
        name = self.loop_text(token)
        if name not in self.loop_vars:
            known = self.loop_vars
            self.fail(token, f"there is no loop variable {token} here", did_you_mean("", name, known))
        return LoopVar(name)

    def loop_load(self, children: Children) -> Load:
        """`x[i, j]`."""
        token, indices = children
        return Load(self.buffer_at(token), tuple(indices or ()))

    def loop_call(self, children: Children) -> Scalar:
        """`min(a, b)`, `exp(a)`: an operator, or an intrinsic of its first argument's type."""
        token, args = children
        name = self.loop_text(token)
        if name in set(ArithOp):
            return Arith(ArithOp(name), tuple(args or ()))
        own_type = scalar_dtype(args[0]) if args else None
        if own_type is None:
            self.fail(token, f"the type of {token} is unknown", f"write {token}[float32](...)")
        return Intrinsic(name, tuple(args), own_type)

    def loop_call_typed(self, children: Children) -> Intrinsic:
        """`exp[float32](a)`."""
        token, own_type, args = children
        return Intrinsic(self.loop_text(token), tuple(args or ()), self.dtype_at(own_type))

    def loop_cast(self, children: Children) -> Cast:
        """`float32(a)`."""
        token, value = children
        return Cast(value, self.dtype_at(token))

    def dtype_at(self, token: Token) -> Any:
        """The element type of that name."""
        return self.read(dtype_of, token, "an element type")

    def loop_group(self, children: Children) -> Scalar:
        """`(scalar)`."""
        scalar: Scalar = children[0]
        return scalar

    def loop_infix(self, children: Children) -> Arith:
        """`a + b`."""
        left, token, right = children
        return Arith(ArithOp(str(token)), (left, right))

    def loop_or(self, children: Children) -> Arith:
        """`a or b`."""
        return Arith(ArithOp.OR, tuple(children))

    def loop_and(self, children: Children) -> Arith:
        """`a and b`."""
        return Arith(ArithOp.AND, tuple(children))

    def loop_not(self, children: Children) -> Arith:
        """`not a`."""
        return Arith(ArithOp.NOT, tuple(children))
