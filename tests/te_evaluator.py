"""Evaluating tensor expressions with NumPy, all elements of an operation at once.

An oracle beside lowering and the interpreter of loop functions: it shares nothing with them, and it is fast
enough for thousands of cases. What is undefined is an error: an index outside of a tensor where the element
is wanted, and a division by zero or too far a shift anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
from tests.loop_evaluator import run_prim_func

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import Arith, ArithOp, Cast, Intrinsic, Literal, Load, LoopVar, Scalar
from intarsia.ir.scalar_types import scalar_dtype
from intarsia.native import te

Array = npt.NDArray[Any]


class UndefinedElementError(ArithmeticError):
    """An expression did what has no defined result."""


def evaluate(tensors: Sequence[te.Tensor], feeds: Mapping[str, Array]) -> list[Array]:
    """The values of tensors.

    Args:
        tensors: Tensors of any operations.
        feeds: For each placeholder that they read its value, by name.

    Raises:
        UndefinedElementError: See above.
    """
    memory = {name: np.asarray(value) for name, value in feeds.items()}
    with np.errstate(all="ignore"):
        for op in operations(tensors):
            _run(op, memory)
    return [memory[tensor.buffer.name] for tensor in tensors]


def operations(tensors: Sequence[te.Tensor]) -> list[te.Operation]:
    """The operations below tensors, each once, after what it reads."""
    found: dict[te.Operation, None] = {}
    waiting: list[tuple[te.Operation, bool]] = [(tensor.op, False) for tensor in reversed(tensors)]
    while waiting:
        op, is_ready = waiting.pop()
        if is_ready:
            found.setdefault(op)
        elif op not in found:
            waiting.append((op, True))
            waiting.extend((tensor.op, False) for tensor in op.inputs)
    return list(found)


def _run(op: te.Operation, memory: dict[str, Array]) -> None:
    match op:
        case te.PlaceholderOp():
            given = memory[op.name]
            assert (given.shape, given.dtype) == (op.shape, op.dtype.numpy), f"{op.name} is {given.dtype}"
        case te.ComputeOp():
            for buffer, value in zip(op.buffers, _computed(op, memory), strict=True):
                assert buffer.name not in memory, f"two operations are named {buffer.name}"
                memory[buffer.name] = value
        case te.ExternOp():
            read = {tensor.buffer.name: memory[tensor.buffer.name] for tensor in op.inputs}
            made = {buffer.name: np.zeros(buffer.shape, buffer.dtype.numpy) for buffer in op.buffers}
            params = (*(tensor.buffer for tensor in op.inputs), *op.buffers)
            run_prim_func(PrimFunc(params, op.body), {**read, **made})
            memory.update(made)
        case _:
            assert_never(op)


def _computed(op: te.ComputeOp, memory: dict[str, Array]) -> list[Array]:
    axes = (*op.axes, *op.reduce_axes)
    grid = np.ix_(*(np.arange(axis.extent) for axis in axes)) if axes else ()
    counters = {axis.name: index for axis, index in zip(axes, grid, strict=True)}
    whole = tuple(axis.extent for axis in axes)
    if op.combiner is None and 0 in whole:
        return [np.empty(whole, dtype.numpy) for dtype in op.dtypes]
    machine = _Machine(memory, counters)
    if 0 in whole:
        values = [np.empty(whole, dtype.numpy) for dtype in op.dtypes]
    else:
        values = [np.broadcast_to(machine.value(body, np.True_), whole) for body in op.bodies]
    if op.combiner is None:
        return [np.array(value) for value in values]
    return _reduced(
        op.combiner, [value.reshape(*op.shape, math.prod(whole[len(op.axes) :])) for value in values]
    )


def _reduced(combiner: te.Combiner, values: list[Array]) -> list[Array]:
    """Values put together over the last axis, in a tree."""
    neutral = [
        np.full((*v.shape[:-1], 1), e.value, v.dtype) for v, e in zip(values, combiner.identity, strict=True)
    ]
    values = [np.concatenate([one, value], -1) for one, value in zip(neutral, values, strict=True)]
    while values[0].shape[-1] > 1:
        half = values[0].shape[-1] // 2
        sides = {
            **{load.buffer.name: v[..., :half] for load, v in zip(combiner.lhs, values, strict=True)},
            **{
                load.buffer.name: v[..., half : 2 * half]
                for load, v in zip(combiner.rhs, values, strict=True)
            },
        }
        rest = [value[..., 2 * half :] for value in values]
        machine = _Machine(sides, {}, is_elementwise=True)
        values = [
            np.concatenate([machine.value(each, np.True_), more], -1)
            for each, more in zip(combiner.result, rest, strict=True)
        ]
    return [value[..., 0] for value in values]


@dataclass
class _Machine:
    """Scalars over whole grids.

    Attributes:
        memory: Arrays by buffer.
        counters: The indices of each axis, of shapes that broadcast.
        is_elementwise: Whether a load is of the whole array.
    """

    memory: Mapping[str, Array]
    counters: Mapping[str, Array]
    is_elementwise: bool = field(default=False)

    def value(self, scalar: Scalar, wanted: Array | np.bool_) -> Array:
        """The value; where it is not wanted it may be anything."""
        dtype = scalar_dtype(scalar)
        assert dtype is not None
        return np.asarray(self._value(scalar, wanted, dtype)).astype(dtype.numpy, copy=False)

    def _value(self, scalar: Scalar, wanted: Array | np.bool_, dtype: DType) -> Any:
        match scalar:
            case LoopVar():
                return self.counters[scalar.name]
            case Literal():
                return np.asarray(scalar.value, dtype.numpy)
            case Load():
                return self._load(scalar, wanted)
            case Cast():
                return self.value(scalar.value, wanted)
            case Intrinsic(name=te.IF_THEN_ELSE):
                condition = self.value(scalar.args[0], wanted)
                then = self.value(scalar.args[1], wanted & condition)
                return np.where(condition, then, self.value(scalar.args[2], wanted & ~condition))
            case Intrinsic():
                return _intrinsic(scalar.name, [self.value(arg, wanted) for arg in scalar.args], wanted)
            case Arith():
                return _arith(scalar.op, [self.value(each, wanted) for each in scalar.operands], wanted)
            case _:
                assert_never(scalar)

    def _load(self, load: Load, wanted: Array | np.bool_) -> Array:
        array = self.memory[load.buffer.name]
        if self.is_elementwise:
            return array
        places = []
        for index, extent in zip(load.indices, load.buffer.shape, strict=True):
            place = self.value(index, wanted)
            if np.any(((place < 0) | (place >= extent)) & wanted):
                raise UndefinedElementError(f"{load.buffer.name} is read outside of {load.buffer}")
            places.append(np.clip(place, 0, max(extent - 1, 0)))
        if array.size == 0:  # nothing of it is wanted
            return np.zeros((), array.dtype)
        return array[tuple(np.broadcast_arrays(*places))] if places else array


def _arith(op: ArithOp, values: list[Array], wanted: Array | np.bool_) -> Any:
    if op in (ArithOp.FLOOR_DIV, ArithOp.FLOOR_MOD) and np.any((values[1] == 0) & wanted):
        raise UndefinedElementError("division by zero")
    return _ARITH[op](*values)


def _intrinsic(name: str, values: list[Array], wanted: Array | np.bool_) -> Any:
    if name.startswith("shift"):
        by, bits = values[1], np.iinfo(values[1].dtype).bits
        if np.any(((by < 0) | (by >= bits)) & wanted):
            raise UndefinedElementError("a shift by more than the width")
    return _INTRINSICS[name](*values)


_ARITH: dict[ArithOp, Callable[..., Any]] = {
    ArithOp.ADD: np.add,
    ArithOp.SUB: np.subtract,
    ArithOp.MUL: np.multiply,
    ArithOp.DIV: np.divide,
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


def _erf(values: Array) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(values.astype(np.float64))


def _dot_of_bytes(unsigned: Array, signed: Array) -> Any:
    """Sum products of the bytes of words, by shifts: independent of the order of bytes in memory."""
    shifts = range(0, 32, 8)
    left = [(unsigned.astype(np.int64) >> shift) & 255 for shift in shifts]
    right = [((signed.astype(np.int64) >> shift & 255) ^ 128) - 128 for shift in shifts]
    return sum(a * b for a, b in zip(left, right, strict=True))


def _dot_of_halves(left: Array, right: Array) -> Any:
    """Sum products of the signed halves of words, by shifts."""
    words = left.astype(np.int64), right.astype(np.int64)
    low, high = ([((word >> shift & 0xFFFF) ^ 0x8000) - 0x8000 for word in words] for shift in (0, 16))
    return (low[0] * low[1] + high[0] * high[1]).astype(np.int32)


def _dot_of_bfloats(left: Array, right: Array) -> Any:
    """Sum products of the halves of words, by bits: independent of the order of halves in memory."""
    total: Any = 0.0
    for shift in (16, 0):
        bits = [((word.astype(np.int64) >> shift & 0xFFFF) << 16).astype(np.uint32) for word in (left, right)]
        first, second = (half.view(np.float32).astype(np.float64) for half in bits)
        total = total + first * second
    return total


def _pair_of_bfloats(low: Array, high: Array) -> Array:
    """Words of numbers rounded to bfloat16, the first ones in the lower halves."""
    lower, upper = (x.astype(DType.BFLOAT16.numpy).view(np.uint16).astype(np.int64) for x in (low, high))
    return (lower | upper << 16).astype(np.uint32).view(np.int32)


_INTRINSICS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tan")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan")},
    **{name: getattr(np, name) for name in ("sinh", "cosh", "tanh", "floor", "ceil", "trunc")},
    "round_even": np.rint,
    "abs": np.abs,
    "pow": np.power,
    "erf": _erf,
    "fma": lambda x, y, z: x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64),
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "bit_not": np.invert,
    "dot_u8s8": _dot_of_bytes,
    "dot_s16": _dot_of_halves,
    "dot_bf16": _dot_of_bfloats,
    "flushed": np.positive,
    "pair_bf16": _pair_of_bfloats,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
}
