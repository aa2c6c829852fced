"""Statements that store an element: choices become IfThenElse, shared and very deep parts get a register.

    y[i] = if_then_else(0 <= i - 1, x[i - 1], 0.0) * 2.0
becomes
    alloc choice: Buffer[(), float32, register] {
      if 0 <= i - 1 { choice[] = x[i - 1]; } else { choice[] = 0.0f32; }
      y[i] = choice[] * 2.0f32;
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from intarsia.ir import DType
from intarsia.ir.loop_walk import operands, with_operands
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    Cast,
    IfThenElse,
    Intrinsic,
    Literal,
    Load,
    MemoryScope,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.scalar_types import scalar_dtype
from intarsia.native.lowering.scalar_form import rewrite
from intarsia.native.te import IF_THEN_ELSE, Combiner
from intarsia.support.free_names import NameSupply
from intarsia.support.post_order import post_order_of

_DEEPEST: Final = 40
"""Scalars deeper than this are cut by registers; the language allows `DEEPEST`."""


@dataclass(slots=True)
class _Registers:
    """What comes before a statement.

    Attributes:
        known: For scalars by identity what stands for them: they are alive as parts of what is lowered.
        buffers: Scalars of shape ().
        statements: What fills them.
    """

    known: dict[int, Scalar]
    buffers: list[Buffer] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    def around(self, *last: Statement) -> Statement:
        body: Statement = block((*self.statements, *last))
        for buffer in reversed(self.buffers):
            body = Allocate(buffer, body)
        return body


def block(statements: Sequence[Statement]) -> Statement:
    """Statements in order; one stands for itself, and blocks are opened."""
    flat: list[Statement] = []
    for each in statements:
        if isinstance(each, Block):
            flat.extend(each.statements)
        else:
            flat.append(each)
    return flat[0] if len(flat) == 1 else Block(tuple(flat))


class ElementStores:
    """Makes statements that store elements; takes names of buffers from `names`."""

    def __init__(self, names: NameSupply) -> None:
        self._names = names

    def store(self, buffer: Buffer, indices: tuple[Scalar, ...], value: Scalar) -> Statement:
        """`buffer[indices] = value`, where the value may hold lazy choices."""
        return self._store(buffer, indices, value, {})

    def initialise(
        self, buffers: Sequence[Buffer], indices: tuple[Scalar, ...], combiner: Combiner
    ) -> Statement:
        """The neutral element in each buffer."""
        stores = [
            Store(*each) for each in zip(buffers, [indices] * len(buffers), combiner.identity, strict=True)
        ]
        return block(stores)

    def update(
        self,
        buffers: Sequence[Buffer],
        indices: tuple[Scalar, ...],
        combiner: Combiner,
        sources: Sequence[Scalar],
    ) -> Statement:
        """The elements put together with new values; all are read before one is written."""
        if len(sources) == 1 and is_choice(sources[0]):
            return self._chosen_update(buffers, indices, combiner, sources[0])
        results = _combined(buffers, indices, combiner, sources)
        if len(results) == 1:
            return self.store(buffers[0], indices, results[0])
        registers = _Registers({})
        values = [self._value(result, registers) for result in results]
        *early, last = zip(buffers, values, strict=True)
        held = []
        for buffer, value in early:
            held.append((buffer, self._register(f"{buffer.name}_next", value, registers)))
        stores = [Store(last[0], indices, last[1])]
        stores += [Store(buffer, indices, value) for buffer, value in held]
        return registers.around(*stores)

    def guard(self, cond: Scalar, then: Statement, otherwise: Statement | None) -> Statement:
        """`if cond`, where the condition may hold lazy choices."""
        registers = _Registers({})
        known = self._value(cond, registers)
        return registers.around(IfThenElse(known, then, otherwise))

    def store_anywhere(self, statement: Store) -> Statement:
        """A store whose indices too may hold lazy choices."""
        registers = _Registers({})
        indices = tuple(self._value(each, registers) for each in statement.indices)
        return registers.around(self.store(statement.buffer, indices, statement.value))

    def _chosen_update(
        self, buffers: Sequence[Buffer], indices: tuple[Scalar, ...], combiner: Combiner, choice: Intrinsic
    ) -> Statement:
        """An update for each branch; none where the neutral element would be put to it."""
        registers = _Registers({})
        cond = self._value(choice.args[0], registers)
        branches = [
            None if each == combiner.identity[0] else self.update(buffers, indices, combiner, [each])
            for each in choice.args[1:]
        ]
        return registers.around(_branch(cond, branches[0], branches[1]))

    def _store(
        self, buffer: Buffer, indices: tuple[Scalar, ...], value: Scalar, known: dict[int, Scalar]
    ) -> Statement:
        registers = _Registers(dict(known))
        if id(value) in known:
            return Store(buffer, indices, known[id(value)])
        if not is_choice(value):
            return registers.around(Store(buffer, indices, self._value(value, registers)))
        cond = self._value(value.args[0], registers, counted=value)
        branches = [self._store(buffer, indices, each, registers.known) for each in value.args[1:]]
        return registers.around(_branch(cond, branches[0], branches[1]))

    def _value(self, root: Scalar, registers: _Registers, counted: Scalar | None = None) -> Scalar:
        """A scalar without choices; what it needs is added to the registers.

        Args:
            root: The scalar.
            registers: Where to.
            counted: In what uses of parts are counted, if that is more than the root.
        """
        always = list(post_order_of((root,), _always_evaluated))
        shared = _shared(root if counted is None else counted)
        known = registers.known
        heights: dict[int, int] = {}
        for scalar in always:
            if id(scalar) in known:
                continue
            if is_choice(scalar):
                known[id(scalar)] = self._chosen(scalar, registers)
                continue
            parts = operands(scalar)
            made = with_operands(scalar, [known.get(id(each), each) for each in parts])
            height = 1 + max([heights.get(id(each), 0) for each in parts], default=-1)
            if parts and (height >= _DEEPEST or (id(scalar) in shared and _is_worth_a_register(scalar))):
                known[id(scalar)] = self._register("shared", made, registers)
            else:
                heights[id(scalar)] = height
                if made is not scalar:
                    known[id(scalar)] = made
        return known.get(id(root), root)

    def _chosen(self, choice: Intrinsic, registers: _Registers) -> Load:
        cond, then, otherwise = choice.args
        held = Buffer(self._names.fresh("choice"), (), choice.dtype, MemoryScope.REGISTER)
        branches = [self._store(held, (), each, registers.known) for each in (then, otherwise)]
        registers.buffers.append(held)
        known_cond = registers.known.get(id(cond), cond)
        registers.statements.append(IfThenElse(known_cond, branches[0], branches[1]))
        return Load(held, ())

    def _register(self, name: str, value: Scalar, registers: _Registers) -> Load:
        dtype = scalar_dtype(value)
        assert dtype is not None, "operands are there"
        held = Buffer(self._names.fresh(name), (), dtype, MemoryScope.REGISTER)
        registers.buffers.append(held)
        registers.statements.append(Store(held, (), value))
        return Load(held, ())


def is_choice(scalar: Scalar) -> TypeGuard[Intrinsic]:
    """Whether a scalar evaluates one of two others only."""
    return isinstance(scalar, Intrinsic) and scalar.name == IF_THEN_ELSE


def _branch(cond: Scalar, then: Statement | None, otherwise: Statement | None) -> Statement:
    if isinstance(cond, Literal):
        taken = then if cond.value else otherwise
        return Block(()) if taken is None else taken
    if then is None:
        return Block(()) if otherwise is None else IfThenElse(_negated(cond), otherwise)
    return IfThenElse(cond, then, otherwise)


def _negated(cond: Scalar) -> Scalar:
    if isinstance(cond, Arith) and cond.op is ArithOp.NOT:
        return cond.operands[0]
    return Arith(ArithOp.NOT, (cond,))


def _combined(
    buffers: Sequence[Buffer], indices: tuple[Scalar, ...], combiner: Combiner, sources: Sequence[Scalar]
) -> list[Scalar]:
    by_name: dict[str, Scalar] = {}
    for position, (left, right) in enumerate(zip(combiner.lhs, combiner.rhs, strict=True)):
        by_name[left.buffer.name] = Load(buffers[position], indices)
        by_name[right.buffer.name] = sources[position]

    def rule(scalar: Scalar) -> Scalar:
        return by_name.get(scalar.buffer.name, scalar) if isinstance(scalar, Load) else scalar

    return [rewrite(each, rule) for each in combiner.result]


def _always_evaluated(scalar: Scalar) -> tuple[Scalar, ...]:
    return scalar.args[:1] if is_choice(scalar) else operands(scalar)


def _shared(root: Scalar) -> set[int]:
    """Scalars that stand in several others."""
    once: set[int] = set()
    twice: set[int] = set()
    for scalar in post_order_of((root,), operands):
        for each in operands(scalar):
            (twice if id(each) in once else once).add(id(each))
    return twice


def _is_worth_a_register(scalar: Scalar) -> bool:
    """Whether it is computed, and neither an index nor a condition: those stay to be seen through."""
    if not isinstance(scalar, Arith | Intrinsic | Cast):
        return False
    return scalar_dtype(scalar) not in (DType.INT64, DType.BOOL)
