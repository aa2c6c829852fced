"""Casts that change nothing, or lose nothing on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.ir import Call, DType, Expr, Op
from intarsia.passes.rules.rule_table import RuleTable
from intarsia.passes.rules.tensor_facts import dtype_of, with_args


@dataclass(frozen=True, slots=True)
class _Precision:
    """Precision of an element type: digits and range in bits. Integers have an exponent of 0 bits."""

    digits: int
    exponent: int = 0
    is_signed: bool = True

    def holds(self, other: _Precision) -> bool:
        """Whether every value of the other has a place here."""
        if other.exponent:
            return self.digits >= other.digits and self.exponent >= other.exponent
        has_sign = self.is_signed or not other.is_signed
        return self.digits >= other.digits and has_sign


_PRECISION: Final = {
    DType.BOOL: _Precision(1, is_signed=False),
    DType.UINT8: _Precision(8, is_signed=False),
    DType.UINT16: _Precision(16, is_signed=False),
    DType.UINT32: _Precision(32, is_signed=False),
    DType.UINT64: _Precision(64, is_signed=False),
    DType.INT8: _Precision(7),
    DType.INT16: _Precision(15),
    DType.INT32: _Precision(31),
    DType.INT64: _Precision(63),
    DType.FLOAT16: _Precision(11, 5),
    DType.BFLOAT16: _Precision(8, 8),
    DType.FLOAT32: _Precision(24, 8),
    DType.FLOAT64: _Precision(53, 11),
}


def is_lossless(source: DType, target: DType) -> bool:
    """Whether a cast keeps every value; False for types of fewer than eight bits, complex ones and text."""
    known = source in _PRECISION and target in _PRECISION
    return known and _PRECISION[target].holds(_PRECISION[source])


def cast_to_same_type(call: Call) -> Expr | None:
    """A Cast of a tensor to the type that it has, as the tensor."""
    dtype = dtype_of(call)
    return call.args[0] if dtype is not None and dtype == dtype_of(call.args[0]) else None


def cast_of_lossless_cast(call: Call) -> Expr | None:
    """A Cast of a Cast that has lost nothing, as one Cast."""
    match call.args:
        case (Call(op=Op(name="Cast", domain=""), args=(x,)) as inner,):
            source, between, target = dtype_of(x), dtype_of(inner), dtype_of(call)
            if source is None or between is None or target not in _PRECISION:
                return None
            return with_args(call, x) if is_lossless(source, between) else None
        case _:
            return None


RULES: RuleTable = {"Cast": (cast_to_same_type, cast_of_lossless_cast)}
