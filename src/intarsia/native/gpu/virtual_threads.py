"""Virtual threads of a GPU thread, written out."""

from __future__ import annotations

from dataclasses import replace

from intarsia.ir.prim_func import Allocate, Block, For, ForKind, IfThenElse, Statement
from intarsia.native.tir.rewriting import block, flat, with_body, with_branches


def with_virtual_threads_unrolled(statement: Statement) -> Statement:
    """Return a kernel whose threads carry out their virtual threads in code of their own."""
    match statement:
        case For() | Allocate():
            changed = with_body(statement, with_virtual_threads_unrolled(statement.body))
            if isinstance(changed, For) and changed.kind is ForKind.VIRTUAL:
                return replace(changed, kind=ForKind.UNROLLED)
            return changed
        case Block():
            return block([with_virtual_threads_unrolled(inner) for inner in flat(statement)])
        case IfThenElse(otherwise=otherwise):
            second = None if otherwise is None else with_virtual_threads_unrolled(otherwise)
            return with_branches(statement, with_virtual_threads_unrolled(statement.then), second)
        case _:
            return statement
