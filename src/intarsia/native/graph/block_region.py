"""Products by constant matrices of few bits as steps that read these bits.

    DequantizeLinear(constant of 4 or 8 bits), MatMul(x, w)   ->   BlockStep(x, words)

The matrix stays as small in memory as it is in the file: its numbers are unpacked in registers. Products of
quantised inputs are left alone, as they sum bytes; other readers of such a constant get it in float32.
Products of float16 and bfloat16 numbers are summed in float32, and then rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import DType, TensorType, Var
from intarsia.native.graph.block_steps import BlockMatrix, BlockStep, panel_columns, sums_digits
from intarsia.native.graph.dequantised import attribute
from intarsia.native.graph.integer_steps import is_plain_gemm
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.op import call
from intarsia.op.onnx_types import elem_type_of

_BITS: Final = {DType.INT4: 4, DType.UINT4: 4, DType.INT8: 8, DType.UINT8: 8}
_SIGNED: Final = (DType.INT4, DType.INT8)
_FLOATS: Final = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
_FEW_COLUMNS: Final = 8
"""Number of columns below which a product stays in float32: they fill no vector."""


def with_block_steps(line: StraightLine, lanes: int, *, has_dot: bool = False) -> StraightLine:
    """Return a region whose products by constants of few bits read these bits. Linear in the region.

    Args:
        line: Region as it was read.
        lanes: Number of lanes of a vector; 0 if unknown.
        has_dot: Whether the machine has an instruction for sums of products of bytes.
    """
    rewriting = _Rewriting(line, lanes, has_dot)
    steps = [written for step in line.steps for written in rewriting.rewritten(step)]
    if not rewriting.matrices:
        return line
    read = {arg for step in steps for arg in step.args} | {*line.results}
    roots = {rewriting.values[number].same_as for number in read if number is not None}
    kept = [
        step
        for step in steps
        if step.outputs[0] not in rewriting.matrices or not roots.isdisjoint(step.outputs)
    ]
    return StraightLine(rewriting.values, kept, line.params, line.results)


@dataclass(eq=False)
class _Rewriting:
    """The region as it is read step by step.

    Attributes:
        line: Region as it was read.
        lanes: Number of lanes of a vector.
        has_dot: Whether the machine has an instruction for sums of products of bytes.
        values: Values, with those that are added.
        matrices: Dequantised constant matrices by number.
    """

    line: StraightLine
    lanes: int
    has_dot: bool
    values: list[RegionValue] = field(init=False)
    matrices: dict[int, BlockMatrix] = field(default_factory=dict)
    _bytes: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.values = list(self.line.values)

    def rewritten(self, step: KernelStep) -> list[KernelStep]:
        """Return a step, as one that reads few bits where it is one; note what becomes float32."""
        match str(step.op):
            case "DequantizeLinear":
                self._note(step)
            case "Transpose":
                self._turn(step)
            case "MatMul" | "Gemm":
                return self._product(step) or [step]
        return [step]

    def _note(self, step: KernelStep) -> None:
        (output,) = step.outputs
        source = step.args[0]
        if source is not None and self.values[source].constant is None:
            self._bytes.add(output)
            return
        matrix = _dequantised_matrix(step, self.values)
        if matrix is not None:
            self.matrices[output] = matrix

    def _turn(self, step: KernelStep) -> None:
        """Note the transpose of a matrix whose blocks are along its columns."""
        matrix = self.matrices.get(-1 if step.args[0] is None else step.args[0])
        if matrix is not None:
            self.matrices[step.outputs[0]] = matrix.transposed

    def _product(self, step: KernelStep) -> list[KernelStep] | None:
        """Return the steps of a product with a matrix of few bits; None for others."""
        number, right = step.args[:2]
        matrix = self.matrices.get(-1 if right is None else right)
        if number is None or matrix is None or number == right:
            return None
        if str(step.op) == "Gemm" and not is_plain_gemm(step):
            return None
        if attribute(step, "transB", 0):
            matrix = matrix.transposed
        x = self.values[number]
        is_given = x.constant is None and x.type.dtype in _FLOATS and number not in self._bytes
        depth, columns = matrix.numbers.shape
        if not is_given or not matrix.is_packable or columns < _FEW_COLUMNS:
            return None
        shape = x.type.static_shape
        if len(shape) < 2 or 0 in shape or not depth:
            return None
        bias = self._bias(step, columns)
        if bias is None:
            return None
        product = self._step(step, matrix, prod(shape[:-1]), bias)
        return [product] if x.type.dtype is DType.FLOAT32 else self._in_float32(product)

    def _bias(self, step: KernelStep, columns: int) -> Array | None:
        """Return the constant bias of each column, of no elements for none; None if it is another one."""
        number = step.args[2] if len(step.args) > 2 else None
        if number is None:
            return np.zeros(0, np.float32)
        bias = self.values[number].constant
        if bias is None or DType.of(bias) not in _FLOATS or bias.size not in (1, columns):
            return None
        if bias.size > 1 and bias.shape[-1] != columns:
            return None
        return np.broadcast_to(bias.astype(np.float32).reshape(-1), (columns,))

    def _step(self, step: KernelStep, matrix: BlockMatrix, rows: int, bias: Array) -> BlockStep:
        columns = matrix.numbers.shape[1]
        has_digits = self.has_dot and sums_digits(matrix, rows)
        width = panel_columns(columns, rows, self.lanes, has_digits=has_digits)
        words = matrix.packed_words(width)
        number = len(self.values)
        self.values.append(RegionValue(TensorType(words.shape, DType.INT32), number, words))
        return BlockStep(
            step.call,
            (step.args[0], number),
            step.outputs,
            matrix.packed_scale(width),
            matrix.packed_offset(width),
            matrix.bits,
            matrix.middle,
            columns,
            bias if bias.size else None,
            has_digits,
        )

    def _in_float32(self, product: BlockStep) -> list[KernelStep]:
        """Return a product of narrower floats as one of float32, between casts that its kernel computes."""
        number, words = product.args
        (output,) = product.outputs
        assert number is not None, "products have an input"
        left, widening = self._cast(number, DType.FLOAT32)
        shape = self.values[output].type.static_shape
        sums = self._add(TensorType(shape, DType.FLOAT32))
        given = Var("x", checked_type=self.values[sums].type)
        rounding = call("Cast", given, to=elem_type_of(self.values[output].type.dtype))
        wide = replace(
            product,
            call=replace(product.call, checked_type=self.values[sums].type),
            args=(left, words),
            outputs=(sums,),
        )
        return [widening, wide, KernelStep(rounding, (sums,), (output,))]

    def _cast(self, number: int, dtype: DType) -> tuple[int, KernelStep]:
        """Return the number of a value in another type, and the step that computes it."""
        type_ = self.values[number].type
        cast = call("Cast", Var("x", checked_type=type_), to=elem_type_of(dtype))
        result = self._add(TensorType(type_.static_shape, dtype))
        return result, KernelStep(cast, (number,), (result,))

    def _add(self, type_: TensorType) -> int:
        self.values.append(RegionValue(type_, len(self.values)))
        return len(self.values) - 1


def _dequantised_matrix(step: KernelStep, values: Sequence[RegionValue]) -> BlockMatrix | None:
    """Return the constant matrix that a step dequantises; None for other values."""
    arrays = [None if arg is None else values[arg].constant for arg in step.args]
    source = step.args[0]
    if source is None or arrays[0] is None or arrays[1] is None or DType.of(arrays[1]) not in _FLOATS:
        return None
    dtype, array = values[source].type.dtype, arrays[0]
    if dtype not in _BITS or array.ndim != 2 or array.size == 0:
        return None
    zero = arrays[2] if len(arrays) > 2 and arrays[2] is not None else np.zeros_like(arrays[1], np.int8)
    shift = 1 << (_BITS[dtype] - 1) if dtype in _SIGNED else 0
    numbers, zeros = ((part.astype(np.int16) + shift).astype(np.uint8) for part in (array, zero))
    axis, block = attribute(step, "axis", 1) % 2, attribute(step, "block_size", 0)
    scales = arrays[1].astype(np.float32)
    if block == 0:
        axis, block = 1 - axis, array.shape[1 - axis]  # one scale for all of a row or column, or for all
        scales, zeros = (_of_lines(part, array.shape[1 - axis], axis) for part in (scales, zeros))
    return BlockMatrix(numbers, scales, zeros, block, _BITS[dtype], axis)


def _of_lines(parameter: Array, count: int, axis: int) -> Array:
    """Return a parameter of each line along an axis as a matrix."""
    lines = np.broadcast_to(parameter.reshape(-1), (count,))
    return np.expand_dims(lines, axis)
