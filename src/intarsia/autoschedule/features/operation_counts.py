"""Counts of operations by kind, and loads, of a scalar expression."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from intarsia.ir.loop_walk import operands
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic, Load, Scalar
from intarsia.ir.scalar_types import scalar_dtype

NUMBER_KINDS: Final = ("mad", "addsub", "mul", "divmod", "cmp", "math_func", "other_func")
"""Kinds of arithmetic operations, as in the names of features."""
COUNTS: Final = (
    *(f"float_{kind}" for kind in NUMBER_KINDS),
    *(f"int_{kind}" for kind in NUMBER_KINDS),
    *("bool_op", "select_op"),
)
"""Names of the counters, in order."""
_MAD, _ADDSUB, _MUL, _DIVMOD, _CMP, _MATH, _OTHER = range(len(NUMBER_KINDS))
_BOOL: Final = COUNTS.index("bool_op")
SELECT: Final = COUNTS.index("select_op")
"""Index of the counter of selects."""
_KINDS: Final[Mapping[ArithOp, int]] = MappingProxyType(
    {
        **dict.fromkeys((ArithOp.ADD, ArithOp.SUB), _ADDSUB),
        ArithOp.MUL: _MUL,
        **dict.fromkeys((ArithOp.DIV, ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD), _DIVMOD),
        **dict.fromkeys((ArithOp.MIN, ArithOp.MAX, ArithOp.LT, ArithOp.LE, ArithOp.EQ, ArithOp.NE), _CMP),
    }
)
_LOGICAL: Final = frozenset({ArithOp.AND, ArithOp.OR, ArithOp.NOT})


def count_operations(root: Scalar, counts: list[int], loads: list[Load]) -> None:
    """Add the operations of a scalar to `counts` (see COUNTS), and what it loads to `loads`.

    Operations of indices count as integer operations. A multiply-add counts as `mad` too,
    beside `mul` and `addsub`: upstream's column of that name is always 0.
    """
    stack = [root]
    while stack:
        scalar = stack.pop()
        if isinstance(scalar, Load):
            loads.append(scalar)
        elif isinstance(scalar, Arith):
            _count_arith(scalar, counts)
        elif isinstance(scalar, Intrinsic):
            first = _first(scalar)
            if scalar.name == "fma":
                for kind in (_MAD, _ADDSUB, _MUL):
                    counts[first + kind] += 1
            else:
                counts[first + _MATH] += 1
        stack.extend(operands(scalar))


def _count_arith(scalar: Arith, counts: list[int]) -> None:
    if scalar.op in _LOGICAL:
        counts[_BOOL] += 1
    elif scalar.op is ArithOp.SELECT:
        counts[SELECT] += 1
    else:
        kind, first = _KINDS[scalar.op], _first(scalar.operands[0])
        counts[first + kind] += 1
        if kind == _ADDSUB and any(_is_product(operand) for operand in scalar.operands):
            counts[first + _MAD] += 1


def _is_product(scalar: Scalar) -> bool:
    return isinstance(scalar, Arith) and scalar.op is ArithOp.MUL


def _first(scalar: Scalar) -> int:
    """Return the index of the first counter for the type of an operand."""
    dtype = scalar_dtype(scalar)
    return 0 if dtype is not None and dtype.is_float else len(NUMBER_KINDS)
