"""The values of indices for all threads at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir.loop_walk import inner_scalars
from intarsia.ir.prim_func import Arith, ArithOp, Literal, LoopVar, Scalar

Numbers = npt.NDArray[np.int64]
_OPERATORS: Final[Mapping[ArithOp, Callable[..., Any]]] = {
    ArithOp.ADD: np.add,
    ArithOp.SUB: np.subtract,
    ArithOp.MUL: np.multiply,
    ArithOp.FLOOR_DIV: np.floor_divide,
    ArithOp.FLOOR_MOD: np.mod,
    ArithOp.MIN: np.minimum,
    ArithOp.MAX: np.maximum,
    ArithOp.LT: np.less,
    ArithOp.LE: np.less_equal,
    ArithOp.EQ: np.equal,
    ArithOp.NE: np.not_equal,
    ArithOp.AND: np.logical_and,
    ArithOp.OR: np.logical_or,
    ArithOp.NOT: np.logical_not,
    ArithOp.SELECT: np.where,
}


def has_values(scalar: Scalar) -> bool:
    """Return whether a scalar is arithmetic on counters alone, so that `value_of` has its values."""
    return all(
        isinstance(part, LoopVar | Literal) or (isinstance(part, Arith) and part.op in _OPERATORS)
        for part in inner_scalars(scalar)
    )


def value_of(scalar: Scalar, env: Mapping[LoopVar, Numbers]) -> Any:
    """Return the values of a scalar, which has some.

    Args:
        scalar: The scalar.
        env: Values of counters; those of others are 0.
    """
    match scalar:
        case LoopVar():
            return env.get(scalar, 0)
        case Literal():
            return scalar.value
        case Arith():
            return _OPERATORS[scalar.op](*(value_of(operand, env) for operand in scalar.operands))
        case _:
            raise AssertionError("indices without loads are arithmetic on counters")
