"""Running loop functions one scalar at a time: the meaning of the loop language, exact and slow.

Sums, products, quotients, `fma` and casts round once. Transcendental functions are computed in float64 and
rounded to their type. What the language leaves undefined raises: an index outside its buffer, an element that
was never written, a division by zero, a float that an integer cannot hold, a shift by more than the width.
"""

import math
import operator
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    Buffer,
    Cast,
    For,
    ForKind,
    IfThenElse,
    Intrinsic,
    KernelStatement,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.scalar_types import scalar_dtype

Number = int | float | bool
Order = Callable[[int], Iterable[int]]


class UndefinedError(ArithmeticError):
    """A loop function did what has no defined result."""


def run_prim_func(prim_func: PrimFunc, buffers: dict[str, npt.NDArray[Any]], *, order: Order = range) -> None:
    """Run a loop function on the arrays given for its parameters, in place.

    Args:
        prim_func: The function; it must pass `verify`.
        buffers: An array for each parameter, of its shape and element type.
        order: The order in which a loop that is not serial carries out that many iterations.

    Raises:
        UndefinedError: See above.
        ValueError: An array is missing, unknown, or of another shape or type.
    """
    if set(buffers) != {param.name for param in prim_func.params}:
        raise ValueError(f"found arrays for {sorted(buffers)}")
    machine = _Machine(order)
    for param in prim_func.params:
        array = buffers[param.name]
        if array.shape != param.shape or array.dtype != param.dtype.numpy:
            raise ValueError(f"{param.name} is {array.dtype}{array.shape}; expected {param}")
        machine.memory[param.name] = _Memory(array, np.ones(param.shape, np.bool_))
    machine.run(prim_func.body)


@dataclass
class _Memory:
    array: npt.NDArray[Any]
    written: npt.NDArray[np.bool_]


@dataclass
class _Machine:
    order: Order
    memory: dict[str, _Memory] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)

    def run(self, statement: Statement) -> None:
        match statement:
            case Block():
                for inner in statement.statements:
                    self.run(inner)
            case For():
                for count in (range if statement.kind is ForKind.SERIAL else self.order)(
                    self._iterations(statement)
                ):
                    with _bound(self.counters, statement.var.name, count):
                        self.run(statement.body)
            case Store():
                memory, place = self._element(statement.buffer, statement.indices)
                memory.array[place] = self.value(statement.value)
                memory.written[place] = True
            case Allocate(buffer=buffer):
                array = np.zeros(buffer.shape, buffer.dtype.numpy)
                fresh = _Memory(array, np.zeros(buffer.shape, np.bool_))
                with _bound(self.memory, buffer.name, fresh):
                    self.run(statement.body)
            case KernelStatement():
                raise AssertionError("the evaluator runs loops of a CPU")
            case IfThenElse():
                branch = statement.then if self.value(statement.cond) else statement.otherwise
                self.run(Block(()) if branch is None else branch)
            case _:
                assert_never(statement)

    def _iterations(self, loop: For) -> int:
        return loop.extent if loop.count is None else int(self.value(loop.count))

    def value(self, scalar: Scalar) -> Number:
        match scalar:
            case LoopVar():
                return self.counters[scalar.name]
            case Literal():
                return scalar.value
            case Load():
                memory, place = self._element(scalar.buffer, scalar.indices)
                if not memory.written[place]:
                    raise UndefinedError(f"{scalar.buffer.name}{list(place)} was never written")
                return _number(memory.array[place], scalar.buffer.dtype)
            case Arith():
                dtype = scalar_dtype(scalar)
                assert dtype is not None
                return _arithmetic(scalar.op, [self.value(item) for item in scalar.operands], dtype)
            case Cast():
                return cast(self.value(scalar.value), scalar.dtype)
            case Intrinsic():
                return _intrinsic(scalar.name, [self.value(item) for item in scalar.args], scalar.dtype)
            case _:
                assert_never(scalar)

    def _element(self, buffer: Buffer, indices: tuple[Scalar, ...]) -> tuple[_Memory, tuple[int, ...]]:
        place = tuple(int(self.value(index)) for index in indices)
        if not all(0 <= index < extent for index, extent in zip(place, buffer.shape, strict=True)):
            raise UndefinedError(f"{buffer.name}{list(place)} is outside of {buffer}")
        return self.memory[buffer.name], place


@contextmanager
def _bound(names: dict[str, Any], name: str, value: object) -> Iterator[None]:
    outer = names.get(name)
    names[name] = value
    try:
        yield
    finally:
        names[name] = outer


def _number(element: Any, dtype: DType) -> Number:
    if dtype.is_float:
        return float(element)
    return bool(element) if dtype is DType.BOOL else int(element)


def rounded(exact: Fraction, dtype: DType) -> float:
    """The float of a type nearest to a number, to even between two; infinite if that is too large."""
    try:
        near = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    if dtype is DType.FLOAT64 or Fraction(near) == exact:
        return _narrowed(near, dtype)
    if int(np.float64(near).view(np.int64)) % 2 == 0:  # then rounding twice is once
        near = math.nextafter(near, math.inf if exact > Fraction(near) else -math.inf)
    return _narrowed(near, dtype)


def _narrowed(value: float, dtype: DType) -> float:
    """A float64 rounded to a type, by its exact significand: bfloat16 is not reached through float32."""
    digits, lowest, largest = _FORMATS[dtype]
    if not math.isfinite(value) or value == 0 or dtype is DType.FLOAT64:
        return value
    if abs(value) >= 2 * largest:
        return math.copysign(math.inf, value)
    exponent = max(math.frexp(value)[1] - digits, lowest)
    result = math.ldexp(round(math.ldexp(value, -exponent)), exponent)
    return math.copysign(math.inf if abs(result) > largest else result, value)


_FORMATS = {  # bits of the significand, exponent of the smallest number, the largest number
    DType.FLOAT64: (53, -1074, 1.7976931348623157e308),
    DType.FLOAT32: (24, -149, math.ldexp(2**24 - 1, 104)),
    DType.FLOAT16: (11, -24, 65504.0),
    DType.BFLOAT16: (8, -133, math.ldexp(2**8 - 1, 120)),
}


def _wrapped(value: int, dtype: DType) -> int:
    limits = np.iinfo(dtype.value)
    return (value - int(limits.min)) % (int(limits.max) - int(limits.min) + 1) + int(limits.min)


def cast(value: Number, dtype: DType) -> Number:
    """A number as another type."""
    if dtype is DType.BOOL:
        return value != 0
    if dtype.is_float:
        return _narrowed(value, dtype) if isinstance(value, float) else rounded(Fraction(int(value)), dtype)
    if not isinstance(value, float):
        return _wrapped(int(value), dtype)
    if not math.isfinite(value) or _wrapped(int(value), dtype) != int(value):
        raise UndefinedError(f"{value} as {dtype.value}")
    return int(value)


def _arithmetic(op: ArithOp, values: list[Any], dtype: DType) -> Number:
    match op:
        case ArithOp.SELECT:
            return values[1] if values[0] else values[2]  # type: ignore[no-any-return]  # numbers, see value
        case ArithOp.NOT:
            return not values[0]
        case ArithOp.AND | ArithOp.OR:
            return all(values) if op is ArithOp.AND else any(values)
        case ArithOp.LT | ArithOp.LE | ArithOp.EQ | ArithOp.NE:
            return bool(_COMPARISONS[op](*values))
        case ArithOp.MIN | ArithOp.MAX:
            return float(np.nan) if any(v != v for v in values) else _EXTREME[op](values)
        case ArithOp.FLOOR_DIV | ArithOp.FLOOR_MOD:
            if values[1] == 0:
                raise UndefinedError("division by zero")
            return _wrapped((operator.floordiv if op is ArithOp.FLOOR_DIV else operator.mod)(*values), dtype)
        case ArithOp.ADD | ArithOp.SUB | ArithOp.MUL | ArithOp.DIV:
            return _basic(op, values, dtype)
        case _:
            assert_never(op)


_COMPARISONS = {
    ArithOp.LT: operator.lt,
    ArithOp.LE: operator.le,
    ArithOp.EQ: operator.eq,
    ArithOp.NE: operator.ne,
}
_EXTREME: dict[ArithOp, Callable[[list[Number]], Number]] = {ArithOp.MIN: min, ArithOp.MAX: max}
_BASIC: dict[ArithOp, Callable[..., Any]] = {
    ArithOp.ADD: np.add,
    ArithOp.SUB: np.subtract,
    ArithOp.MUL: np.multiply,
    ArithOp.DIV: np.divide,
}
_EXACT: dict[ArithOp, Callable[..., int]] = {
    ArithOp.ADD: operator.add,
    ArithOp.SUB: operator.sub,
    ArithOp.MUL: operator.mul,
}


def _basic(op: ArithOp, values: list[Any], dtype: DType) -> Number:
    """Floats through float64, which has more than twice the digits of the others: one rounding in effect."""
    if dtype.is_integer:
        return _wrapped(_EXACT[op](*values), dtype)
    with np.errstate(all="ignore"):
        return _narrowed(float(_BASIC[op](*map(np.float64, values))), dtype)


def _intrinsic(name: str, values: list[Any], dtype: DType) -> Number:
    if name == "fma":
        return _fma(values, dtype)
    if dtype.is_integer:
        if name.startswith("shift") and not 0 <= values[1] < np.iinfo(dtype.value).bits:
            raise UndefinedError(f"shift by {values[1]}")
        return _wrapped(_INTEGER[name](*values), dtype)
    with np.errstate(all="ignore"):
        return _narrowed(float(_FLOAT[name](*map(np.float64, values))), dtype)


def _fma(values: list[float], dtype: DType) -> float:
    if all(map(math.isfinite, values)):
        left, right, added = map(Fraction, values)
        if exact := left * right + added:
            return rounded(exact, dtype)
    if math.isinf(values[2]) and math.isfinite(values[0]) and math.isfinite(values[1]):
        return values[2]  # the product may overflow in float64, but not exactly
    with np.errstate(all="ignore"):
        return _narrowed(float(np.float64(values[0]) * np.float64(values[1]) + np.float64(values[2])), dtype)


def _dot_of_bytes(unsigned: int, signed: int) -> int:
    left = [unsigned >> shift & 255 for shift in range(0, 32, 8)]
    right = [((signed >> shift & 255) ^ 128) - 128 for shift in range(0, 32, 8)]
    return sum(map(operator.mul, left, right))


def _dot_of_halves(left: int, right: int) -> int:
    low, high = (
        [((word >> shift & 0xFFFF) ^ 0x8000) - 0x8000 for word in (left, right)] for shift in (0, 16)
    )
    return low[0] * low[1] + high[0] * high[1]


def _dot_of_bfloats(left: float, right: float) -> float:
    words = [int(word) & 0xFFFFFFFF for word in (left, right)]
    total = 0.0
    for shift in (16, 0):
        first, second = (
            struct.unpack("<f", struct.pack("<I", (word >> shift & 0xFFFF) << 16))[0] for word in words
        )
        total += first * second
    return total


def _pair_of_bfloats(low: float, high: float) -> int:
    """The word of two numbers rounded to bfloat16, the first one in its lower half."""
    bits = np.array([low, high], np.float32).astype(DType.BFLOAT16.numpy).view(np.uint16)
    return int(bits[0]) | int(bits[1]) << 16


_INTEGER: dict[str, Callable[..., int]] = {
    "abs": abs,
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
    "bit_not": operator.invert,
    "dot_u8s8": _dot_of_bytes,
    "dot_s16": _dot_of_halves,
    "pair_bf16": _pair_of_bfloats,
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
}
_FLOAT: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tan")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan")},
    **{name: getattr(np, name) for name in ("sinh", "cosh", "tanh", "floor", "ceil", "trunc")},
    "round_even": np.rint,
    "abs": np.abs,
    "pow": np.power,
    "erf": math.erf,
    "dot_bf16": _dot_of_bfloats,
    "flushed": operator.pos,
}
