"""What the scalars of loop functions compute with: element types, operators, intrinsics, and their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, assert_never

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import Arith, ArithOp, Cast, Intrinsic, Literal, Load, LoopVar, Scalar

LOOP_DTYPES: Final = frozenset(
    {
        *(DType.FLOAT64, DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16),
        *(DType.INT64, DType.INT32, DType.INT16, DType.INT8),
        *(DType.UINT64, DType.UINT32, DType.UINT16, DType.UINT8),
        DType.BOOL,
    }
)
"""Element types of loop functions: those that fill whole bytes and that machines compute with."""
UNPACKED: Final[Mapping[DType, DType]] = MappingProxyType({DType.INT4: DType.INT8, DType.UINT4: DType.UINT8})
"""Types of constants whose numbers fill half a byte, with those of loop functions that hold the numbers."""


class Kind(Enum):
    """What operands an operator takes; the value says it in words."""

    FLOAT = "floats"
    SINGLE = "float32"
    INTEGER = "integers"
    WORD = "int32"
    NUMBER = "numbers"
    BOOL = "bools"
    ANY = "scalars"

    def holds(self, dtype: DType) -> bool:
        """Whether a type is of this kind; bool is no number."""
        match self:
            case Kind.FLOAT:
                return dtype.is_float
            case Kind.SINGLE:
                return dtype is DType.FLOAT32
            case Kind.INTEGER:
                return dtype.is_integer
            case Kind.WORD:
                return dtype is DType.INT32
            case Kind.NUMBER:
                return dtype.is_float or dtype.is_integer
            case Kind.BOOL:
                return dtype is DType.BOOL
            case Kind.ANY:
                return True
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class Signature:
    """How many operands of one type are taken, of what kind that type is, and the type of the result.

    Attributes:
        arity: Number of operands.
        kind: Kind of their type.
        result: Type of an intrinsic's result; None for that of the operands.
    """

    arity: int
    kind: Kind
    result: DType | None = None


ARITHMETIC: Final[Mapping[ArithOp, Signature]] = MappingProxyType(
    {
        **dict.fromkeys((ArithOp.ADD, ArithOp.SUB, ArithOp.MUL), Signature(2, Kind.NUMBER)),
        **dict.fromkeys((ArithOp.MIN, ArithOp.MAX), Signature(2, Kind.NUMBER)),
        ArithOp.DIV: Signature(2, Kind.FLOAT),
        **dict.fromkeys((ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD), Signature(2, Kind.INTEGER)),
        **dict.fromkeys((ArithOp.LT, ArithOp.LE), Signature(2, Kind.NUMBER)),
        **dict.fromkeys((ArithOp.EQ, ArithOp.NE), Signature(2, Kind.ANY)),
        **dict.fromkeys((ArithOp.AND, ArithOp.OR), Signature(2, Kind.BOOL)),
        ArithOp.NOT: Signature(1, Kind.BOOL),
        ArithOp.SELECT: Signature(3, Kind.ANY),  # the last two; the first is a bool
    }
)
"""The signature of each operator."""

COMPARISONS: Final = frozenset({ArithOp.LT, ArithOp.LE, ArithOp.EQ, ArithOp.NE})
"""Operators with a bool as result, whatever they compare."""

_TYPED_BY: Final[Mapping[ArithOp, int | None]] = MappingProxyType(
    {
        op: None if op in COMPARISONS or signature.kind is Kind.BOOL else int(op is ArithOp.SELECT)
        for op, signature in ARITHMETIC.items()
    }
)
"""The position of the operand that gives the result its type; None for a bool."""

_FLOAT_FUNCTIONS: Final = (
    *("exp", "exp2", "log", "log2", "sqrt", "erf"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("floor", "ceil", "trunc", "round_even"),
)

INTRINSICS: Final[Mapping[str, Signature]] = MappingProxyType(
    {
        **dict.fromkeys(_FLOAT_FUNCTIONS, Signature(1, Kind.FLOAT)),
        "abs": Signature(1, Kind.NUMBER),
        "pow": Signature(2, Kind.FLOAT),
        "fma": Signature(3, Kind.FLOAT),  # a * b + c, rounded once
        "flushed": Signature(1, Kind.FLOAT),  # its operand, or perhaps 0 if that is subnormal
        **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), Signature(2, Kind.INTEGER)),
        "bit_not": Signature(1, Kind.INTEGER),
        # The sum of the products of four bytes: unsigned ones of the first word, signed ones of the second.
        "dot_u8s8": Signature(2, Kind.WORD),
        # The sum of the products of two signed halves of both words; it wraps around.
        "dot_s16": Signature(2, Kind.WORD),
        # The sum of the products of two bfloat16 numbers in float32: the upper halves of both words, then
        # the lower ones. Subnormal numbers may count as 0.
        "dot_bf16": Signature(2, Kind.WORD, DType.FLOAT32),
        # The word of two numbers rounded to bfloat16, the first one in the lower half. A subnormal one may
        # become 0.
        "pair_bf16": Signature(2, Kind.SINGLE, DType.INT32),
        # By less than the width of the type, else undefined; to the right, signed integers keep their sign.
        **dict.fromkeys(("shift_left", "shift_right"), Signature(2, Kind.INTEGER)),
    }
)
"""The signature of each intrinsic."""


def scalar_dtype(scalar: Scalar) -> DType | None:
    """The type of a scalar by its form, right if the scalar is; None if an operand is missing."""
    while isinstance(scalar, Arith):
        position = _TYPED_BY[scalar.op]
        if position is None:
            return DType.BOOL
        if position >= len(scalar.operands):
            return None
        scalar = scalar.operands[position]
    if isinstance(scalar, LoopVar):
        return DType.INT64
    if isinstance(scalar, Load):
        return scalar.buffer.dtype
    return scalar.dtype


def dtype_over(scalar: Scalar, given: Sequence[DType | None]) -> DType | None:
    """The type of a scalar with operands of those types; None if an operand is missing."""
    if not isinstance(scalar, Arith):
        return scalar_dtype(scalar)
    position = _TYPED_BY[scalar.op]
    if position is None:
        return DType.BOOL
    return given[position] if position < len(given) else None


def operand_complaint(signature: Signature, given: Sequence[DType | None]) -> str | None:
    """What is wrong with operands of those types, or None; an unknown type fits everything."""
    if len(given) != signature.arity:
        return f"found {len(given)} as the number of operands; expected {signature.arity}"
    known_types = [dtype for dtype in given if dtype is not None]
    for dtype in known_types:
        if not signature.kind.holds(dtype):
            return f"an operand is {dtype.value}; expected {signature.kind.value}"
    if len(set(known_types)) > 1:
        return f"the operands are {' and '.join(dtype.value for dtype in known_types)}; expected one type"
    return None


def scalar_complaint(scalar: Scalar, given: Sequence[DType | None]) -> str | None:
    """What is wrong with a scalar over operands of those types, or None."""
    match scalar:
        case Arith(op=ArithOp.SELECT) if len(given) == 3:
            if given[0] not in (None, DType.BOOL):
                return f"the condition of select is {given[0]}; expected bool"
            problem = operand_complaint(Signature(2, Kind.ANY), given[1:])
        case Arith():
            problem = operand_complaint(ARITHMETIC[scalar.op], given)
        case Intrinsic():
            return _intrinsic_complaint(scalar, given)
        case Literal():
            return None if scalar.is_in_type else f"{scalar.value} is no {scalar.dtype.value}"
        case LoopVar() | Load() | Cast():
            return None
        case _:
            assert_never(scalar)
    return None if problem is None else f"{scalar.op.value}: {problem}"


def _intrinsic_complaint(scalar: Intrinsic, given: Sequence[DType | None]) -> str | None:
    signature = INTRINSICS.get(scalar.name)
    if signature is None:
        return f"unknown intrinsic {scalar.name}"
    problem = operand_complaint(signature, given)
    if problem is None and signature.result not in (None, scalar.dtype):
        problem = f"the result is {scalar.dtype.value}; expected {signature.result}"
    if problem is None and signature.result is None and given[0] not in (None, scalar.dtype):
        problem = f"the result is {scalar.dtype.value}; expected {given[0]}, the type of the operands"
    return None if problem is None else f"{scalar.name}: {problem}"
