"""What becomes of the tokens of a text, by the mode of the pool: op/token_pool_op."""

from __future__ import annotations

from intarsia.ir import DType
from intarsia.native.te import Expression, highest, lowest, maximum, minimum
from intarsia.native.te.functions import const


def identity(mode: str, dtype: DType) -> Expression:
    """Return what the pool of no tokens is, by the mode of the pool."""
    match mode:
        case "max":
            return const(lowest(dtype), dtype)
        case "min":
            return const(highest(dtype), dtype)
        case _:
            return const(0.0 if dtype.is_float else 0, dtype)


def combined(mode: str, left: Expression, right: Expression) -> Expression:
    """Return the pool of two values, by the mode of the pool."""
    match mode:
        case "max":
            return maximum(left, right)
        case "min":
            return minimum(left, right)
        case _:
            return left + right
