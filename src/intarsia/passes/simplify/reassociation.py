"""Constants that are added, or multiplied, one after the other, as one constant.

Sums of floats are rounded once less than before, which may change the last digits; where the constant would
overflow or vanish, the program is left as it is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, DType, Expr
from intarsia.op import call as make_call
from intarsia.passes.rules.rule_table import IsPrivate, SharingRuleTable
from intarsia.passes.rules.tensor_facts import Array, dtype_of, operator_name

_SUMS: Final = frozenset({"Add", "Sub"})
_PRODUCTS: Final = frozenset({"Mul", "Div"})
_WIDE: Final = frozenset({DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16})
_EXACT: Final = frozenset({DType.INT32, DType.INT64, DType.UINT32, DType.UINT64, DType.FLOAT64})


def merge_sums(call: Call, is_private: IsPrivate) -> Expr | None:
    """`(x + c1) - c2` as `x + (c1 - c2)`."""
    return _merged(call, is_private, _SUMS)


def merge_products(call: Call, is_private: IsPrivate) -> Expr | None:
    """`(x * c1) / c2` as `x * (c1 / c2)`; of integers, products only."""
    return _merged(call, is_private, _PRODUCTS)


def _merged(call: Call, is_private: IsPrivate, names: frozenset[str]) -> Expr | None:
    inner, constant = _operands(call)
    if constant is None or not isinstance(inner, Call) or operator_name(inner) not in names:
        return None
    x, inner_constant = _operands(inner)
    dtype = dtype_of(call)
    if inner_constant is None or dtype is None or not is_private(inner):
        return None
    if dtype.is_integer and "Div" in (operator_name(call), operator_name(inner)):
        return None
    merged = _combined(names, operator_name(inner), inner_constant, operator_name(call), constant, dtype)
    return None if merged is None else make_call("Add" if names is _SUMS else "Mul", x, Constant(merged))


def _operands(call: Call) -> tuple[Expr, Array | None]:
    """What a call combines with a constant, and the constant; in `-` and `/` that must stand right."""
    match call.args:
        case (x, Constant(data=data)):
            return x, data
        case (Constant(data=data), x) if operator_name(call) in ("Add", "Mul"):
            return x, data
        case _:
            return call, None


def _combined(
    names: frozenset[str], inner_name: str, inner: Array, outer_name: str, outer: Array, dtype: DType
) -> Array | None:
    """The one constant, if it is no larger than the two and as good a number."""
    size = np.broadcast_shapes(inner.shape, outer.shape)
    if dtype not in _WIDE | _EXACT or np.prod(size) > max(inner.size, outer.size):
        return None
    with np.errstate(all="ignore"):
        first, second = (item.astype(np.float64) if dtype in _WIDE else item for item in (inner, outer))
        if names is _SUMS:
            wide = (-first if inner_name == "Sub" else first) + (-second if outer_name == "Sub" else second)
            is_zero = wide == 0
        else:
            wide = (1 / first if inner_name == "Div" else first) * (
                1 / second if outer_name == "Div" else second
            )
            is_zero = (first == 0) | (second == 0)
        found: Array = np.asarray(wide).astype(dtype.numpy)
    return None if dtype.is_float and not _is_harmless(found, is_zero, dtype) else found


def _is_harmless(values: Array, is_zero: Array, dtype: DType) -> bool:
    """Whether nothing has overflowed, or become 0 or lost digits by being tiny.

    Args:
        values: The constant as it is stored.
        is_zero: Mask of the elements that are 0 exactly.
        dtype: Its type.
    """
    from ml_dtypes import finfo

    smallest = float(finfo(dtype.numpy).smallest_normal)
    size = np.abs(values.astype(np.float64))
    return bool(np.isfinite(size).all() and ((size >= smallest) | is_zero).all())


SHARING_RULES: SharingRuleTable = {
    **dict.fromkeys(_SUMS, (merge_sums,)),
    **dict.fromkeys(_PRODUCTS, (merge_products,)),
}
