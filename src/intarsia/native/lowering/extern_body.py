"""Statements of extern operations, spliced into a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import (
    Allocate,
    Block,
    Buffer,
    For,
    IfThenElse,
    KernelStatement,
    Load,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.lowering.element_store import ElementStores, block
from intarsia.native.lowering.scalar_form import rewrite
from intarsia.native.te import ExternOp
from intarsia.native.tir.rewriting import with_scalars
from intarsia.support.free_names import NameSupply


def splice(
    op: ExternOp, names: NameSupply, stores: ElementStores, rule: Callable[[Load], Scalar]
) -> Statement:
    """Return the statement of an extern operation, with fresh buffer names and lowered choices.

    Args:
        op: The operation.
        names: Names that are taken; buffers of the operation are renamed to fresh ones.
        stores: Builder of statements with lazy choices.
        rule: Replacement of each load.
    """
    renamed: dict[Buffer, Buffer] = {}
    for visit in walk(op.body):
        if isinstance(visit.statement, Allocate) and visit.event is Event.ENTER:
            allocated = visit.statement.buffer
            renamed[allocated] = replace(allocated, name=names.fresh(allocated.name))
    return _Splice(renamed, stores, rule).statement(op.body)


@dataclass(frozen=True, slots=True)
class _Splice:
    renamed: Mapping[Buffer, Buffer]
    stores: ElementStores
    rule: Callable[[Load], Scalar]

    def statement(self, statement: Statement) -> Statement:
        match statement:
            case Block():
                return block([self.statement(inner) for inner in statement.statements])
            case For():
                return replace(statement, body=self.statement(statement.body))
            case Allocate():
                return Allocate(self.buffer(statement.buffer), self.statement(statement.body))
            case IfThenElse(cond=cond, then=then, otherwise=otherwise):
                second = None if otherwise is None else self.statement(otherwise)
                return self.stores.guard(self.scalar(cond), self.statement(then), second)
            case KernelStatement():
                return with_scalars(statement, self.scalar, lambda buffer, at: (self.buffer(buffer), at))
            case Store():
                indices = tuple(map(self.scalar, statement.indices))
                stored = Store(self.buffer(statement.buffer), indices, self.scalar(statement.value))
                return self.stores.store_anywhere(stored)
            case _:
                assert_never(statement)

    def buffer(self, buffer: Buffer) -> Buffer:
        return self.renamed.get(buffer, buffer)

    def scalar(self, scalar: Scalar) -> Scalar:
        return rewrite(scalar, self._rewritten)

    def _rewritten(self, scalar: Scalar) -> Scalar:
        if not isinstance(scalar, Load):
            return scalar
        renamed = self.renamed.get(scalar.buffer)
        return self.rule(scalar) if renamed is None else Load(renamed, scalar.indices)
