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
"""Deepest scalar that is not split by a register; the language allows `DEEPEST`."""


@dataclass(slots=True)
class _Registers:
    """Registers that a statement needs, and the statements that fill them.

    Attributes:
        replacements: Replacement of scalars by identity; the lowered scalar keeps the originals alive.
        buffers: Registers, buffers of shape ().
        statements: Statements that fill the registers.
    """

    replacements: dict[int, Scalar]
    buffers: list[Buffer] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    def wrap(self, *last: Statement) -> Statement:
        body: Statement = block((*self.statements, *last))
        for buffer in reversed(self.buffers):
            body = Allocate(buffer, body)
        return body


def block(statements: Sequence[Statement]) -> Statement:
    """Return statements in order as one, without blocks in blocks."""
    flat: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Block):
            flat.extend(statement.statements)
        else:
            flat.append(statement)
    return flat[0] if len(flat) == 1 else Block(tuple(flat))


class ElementStores:
    """Builds statements that store elements; takes names of buffers from `names`."""

    def __init__(self, names: NameSupply) -> None:
        self._names = names

    def store(self, buffer: Buffer, indices: tuple[Scalar, ...], value: Scalar) -> Statement:
        """Build `buffer[indices] = value`, where the value may hold lazy choices."""
        return self._store(buffer, indices, value, {})

    def initialise(
        self, buffers: Sequence[Buffer], indices: tuple[Scalar, ...], combiner: Combiner
    ) -> Statement:
        """Build stores of the neutral element to each buffer."""
        stores = [
            Store(*arguments)
            for arguments in zip(buffers, [indices] * len(buffers), combiner.identity, strict=True)
        ]
        return block(stores)

    def update(
        self,
        buffers: Sequence[Buffer],
        indices: tuple[Scalar, ...],
        combiner: Combiner,
        sources: Sequence[Scalar],
    ) -> Statement:
        """Build the combination of elements with new values; all elements are read before one is written."""
        if len(sources) == 1 and is_choice(sources[0]):
            return self._update_by_choice(buffers, indices, combiner, sources[0])
        results = _combined(buffers, indices, combiner, sources)
        if len(results) == 1:
            return self.store(buffers[0], indices, results[0])
        registers = _Registers({})
        values = [self._evaluate(result, registers) for result in results]
        # All results are computed before the first store, which would change loads of the others.
        *early, last = zip(buffers, values, strict=True)
        held = []
        for buffer, value in early:
            held.append((buffer, self._store_in_register(f"{buffer.name}_next", value, registers)))
        stores = [Store(last[0], indices, last[1])]
        stores += [Store(buffer, indices, value) for buffer, value in held]
        return registers.wrap(*stores)

    def guard(self, cond: Scalar, then: Statement, otherwise: Statement | None) -> Statement:
        """Build `if cond`, where the condition may hold lazy choices."""
        registers = _Registers({})
        condition = self._evaluate(cond, registers)
        return registers.wrap(IfThenElse(condition, then, otherwise))

    def store_anywhere(self, statement: Store) -> Statement:
        """Build a store whose indices too may hold lazy choices."""
        registers = _Registers({})
        indices = tuple(self._evaluate(index, registers) for index in statement.indices)
        return registers.wrap(self.store(statement.buffer, indices, statement.value))

    def _update_by_choice(
        self, buffers: Sequence[Buffer], indices: tuple[Scalar, ...], combiner: Combiner, choice: Intrinsic
    ) -> Statement:
        """Build an update for each branch; none for a branch that is the neutral element."""
        registers = _Registers({})
        cond = self._evaluate(choice.args[0], registers)
        branches = [
            None if branch == combiner.identity[0] else self.update(buffers, indices, combiner, [branch])
            for branch in choice.args[1:]
        ]
        return registers.wrap(_branch(cond, branches[0], branches[1]))

    def _store(
        self, buffer: Buffer, indices: tuple[Scalar, ...], value: Scalar, replacements: dict[int, Scalar]
    ) -> Statement:
        registers = _Registers(dict(replacements))
        if id(value) in replacements:
            return Store(buffer, indices, replacements[id(value)])
        if not is_choice(value):
            return registers.wrap(Store(buffer, indices, self._evaluate(value, registers)))
        cond = self._evaluate(value.args[0], registers, counted=value)
        branches = [self._store(buffer, indices, branch, registers.replacements) for branch in value.args[1:]]
        return registers.wrap(_branch(cond, branches[0], branches[1]))

    def _evaluate(self, root: Scalar, registers: _Registers, counted: Scalar | None = None) -> Scalar:
        """Return a scalar without lazy choices; the registers that it needs are added.

        Args:
            root: The scalar.
            registers: Registers to add to.
            counted: Scalar in which uses of parts are counted; None for the root.
        """
        # Only what is always evaluated may move before the statement: a branch may read out of bounds.
        always = list(post_order_of((root,), _always_evaluated))
        shared = _shared(root if counted is None else counted)
        replacements = registers.replacements
        heights: dict[int, int] = {}
        for scalar in always:
            if id(scalar) in replacements:
                continue
            if is_choice(scalar):
                replacements[id(scalar)] = self._store_choice(scalar, registers)
                continue
            parts = operands(scalar)
            rebuilt = with_operands(scalar, [replacements.get(id(part), part) for part in parts])
            height = 1 + max([heights.get(id(part), 0) for part in parts], default=-1)
            # A scalar that is used twice is computed once; deep ones are split to bound later recursion.
            if parts and (height >= _DEEPEST or (id(scalar) in shared and _is_worth_a_register(scalar))):
                replacements[id(scalar)] = self._store_in_register("shared", rebuilt, registers)
            else:
                heights[id(scalar)] = height
                if rebuilt is not scalar:
                    replacements[id(scalar)] = rebuilt
        return replacements.get(id(root), root)

    def _store_choice(self, choice: Intrinsic, registers: _Registers) -> Load:
        cond, then, otherwise = choice.args
        held = Buffer(self._names.fresh("choice"), (), choice.dtype, MemoryScope.REGISTER)
        branches = [self._store(held, (), branch, registers.replacements) for branch in (then, otherwise)]
        registers.buffers.append(held)
        known_cond = registers.replacements.get(id(cond), cond)
        registers.statements.append(IfThenElse(known_cond, branches[0], branches[1]))
        return Load(held, ())

    def _store_in_register(self, name: str, value: Scalar, registers: _Registers) -> Load:
        dtype = scalar_dtype(value)
        assert dtype is not None, "operands are there"
        held = Buffer(self._names.fresh(name), (), dtype, MemoryScope.REGISTER)
        registers.buffers.append(held)
        registers.statements.append(Store(held, (), value))
        return Load(held, ())


def is_choice(scalar: Scalar) -> TypeGuard[Intrinsic]:
    """Return whether a scalar evaluates one of two others only."""
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

    return [rewrite(result, rule) for result in combiner.result]


def _always_evaluated(scalar: Scalar) -> tuple[Scalar, ...]:
    return scalar.args[:1] if is_choice(scalar) else operands(scalar)


def _shared(root: Scalar) -> set[int]:
    """Return the identities of scalars that are used more than once."""
    once: set[int] = set()
    twice: set[int] = set()
    for scalar in post_order_of((root,), operands):
        for operand in operands(scalar):
            (twice if id(operand) in once else once).add(id(operand))
    return twice


def _is_worth_a_register(scalar: Scalar) -> bool:
    """Return whether it is computed and no index or condition: passes must see through those."""
    if not isinstance(scalar, Arith | Intrinsic | Cast):
        return False
    return scalar_dtype(scalar) not in (DType.INT64, DType.BOOL)
