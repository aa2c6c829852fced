"""The field of a tuple that is written out."""

from __future__ import annotations

from intarsia.ir import Expr, Tuple, TupleGetItem
from intarsia.target import UNCONSTRAINED


def tuple_field(expr: TupleGetItem) -> Expr:
    """`(a, b).1` as `b`; the expression itself where the tuple is not written out, or `b` lives elsewhere."""
    match expr.tuple_value:
        case Tuple(fields=fields) if 0 <= expr.index < len(fields):
            field = fields[expr.index]
            is_moved = expr.virtual_device not in (UNCONSTRAINED, field.virtual_device)
            return expr if is_moved else field
        case _:
            return expr
