"""Float16 values between convolutions and products stay in float32.

    Conv(x, w) c, Relu(c) r, Conv(r, v) y   ->   Cast(x, float32), Conv c, Relu r, Conv y, Cast(y, float16)

No instruction of a CPU without AVX512-FP16 computes in float16: what is stored so is widened by each reader,
in every multiplication of a product. Blocks of channels, transforms and packed matrices are of float32 only.
So whatever is joined with such operators is computed and stored in float32, weights are widened at compile
time, and a rounding stands where a value leaves: at results of the region, and at operators that decide by
it. Roundings less are no error, and no sum overflows in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import Call, DType, TensorType, TupleType, Type, Var
from intarsia.native.graph.blocked_steps import CONVOLUTIONS
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.native.machine.isa import Isa
from intarsia.op import call
from intarsia.op.infer import infer_call_type
from intarsia.op.onnx_types import elem_type_of
from intarsia.support.errors import InvalidModelError

_PRODUCTS: Final = ("Gemm", "MatMul")
_FEW_ROWS: Final = {16: 8, 8: 2}
"""Maximum number of rows of products that stay on narrow weights, by lanes: loading takes most of the time.

With AVX2 widening takes as long as loading: of 6 rows by 2,048 x 4,096 narrow weights take 1.9 times the time
of wide ones, of one row by 4,096 x 4,096 0.64 (Zen 4 with AVX2).
"""
_LARGE: Final = 1 << 14
"""Number of elements of constants from which a step that is no seed reads them as they are stored."""
_DECIDING: Final = frozenset({"Ceil", "Floor", "Hardmax", "Mod", "Round", "Sign"})
"""Operators whose result jumps: they read rounded numbers."""
_CASTS: Final = frozenset({"Cast", "CastLike", "DequantizeLinear"})
"""Operators whose results have the type that the program names."""


def few_rows(isa: Isa, weight_bytes: int) -> int:
    """Return the maximum number of rows of products that stay on narrow weights.

    Weights that fit into the last-level cache stay there between runs, and are read as fast in float32.

    Args:
        isa: Instruction set.
        weight_bytes: Bytes of all weights.
    """
    if 2 * weight_bytes <= isa.caches.third:
        return 0
    return _FEW_ROWS.get(isa.vector_bytes // DType.FLOAT32.numpy.itemsize, 0)


def with_wide_halves(line: StraightLine, few_rows: int = 0) -> StraightLine:
    """Return a region whose convolutions and products of float16, and what joins them, are in float32.

    Linear in the region.

    Args:
        line: Region as it was read.
        few_rows: Maximum number of rows of products that stay on narrow weights.
    """
    widening = _Widening(line, few_rows)
    return widening.result() if widening.chosen else line


@dataclass(eq=False)
class _Widening:
    """The region as it is written again.

    Attributes:
        line: The region.
        few_rows: Maximum number of rows of products that stay on narrow weights.
        chosen: Positions of the steps that are computed in float32.
        values: Values, with those that are added.
        steps: Steps written so far.
    """

    line: StraightLine
    few_rows: int
    chosen: frozenset[int] = field(init=False)
    values: list[RegionValue] = field(init=False)
    steps: list[KernelStep] = field(default_factory=list)
    _roots: frozenset[int] = field(init=False)
    _wide: dict[int, int] = field(default_factory=dict)
    _narrow: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = list(self.line.values)
        self.chosen = self._joined_steps()
        written = (number for position in self.chosen for number in self.line.steps[position].outputs)
        self._roots = frozenset(number for number in written if self._is_half(number))
        for number, value in enumerate(self.line.values):
            if value.same_as in self._roots and value.constant is None:
                self.values[number] = replace(value, type=_wide_type(value.type))

    def result(self) -> StraightLine:
        """Return the region with all steps written."""
        for position, step in enumerate(self.line.steps):
            if position in self.chosen:
                self.steps.append(self._in_float32(step))
            elif not self._drops(step):
                args = tuple(self._as_half(arg) if self._is_widened(arg) else arg for arg in step.args)
                self.steps.append(step if args == step.args else replace(step, args=args))
        results = tuple(
            self._as_half(number) if self._is_widened(number) else number for number in self.line.results
        )
        return StraightLine(self.values, self.steps, self.line.params, results)

    def _joined_steps(self) -> frozenset[int]:
        """Return the positions of convolutions and products, and of all steps joined with them."""
        touching: dict[int, list[int]] = {}
        waiting = list[int]()
        for position, step in enumerate(self.line.steps):
            if type(step) is not KernelStep or not self._can_widen(step):
                continue
            waiting += [position] if self._is_seed(step) else []
            for root in self._computed_roots(step):
                touching.setdefault(root, []).append(position)
        joined = set(waiting)
        while waiting:
            for root in self._computed_roots(self.line.steps[waiting.pop()]):
                others = touching.pop(root, ())
                waiting += [position for position in others if position not in joined]
                joined.update(others)
        return frozenset(joined)

    def _computed_roots(self, step: KernelStep) -> set[int]:
        numbers = (number for number in (*step.args, *step.outputs) if number is not None)
        return {self.line.values[number].same_as for number in numbers if self._is_half(number)}

    def _is_half(self, number: int | None) -> bool:
        value = None if number is None else self.line.values[number]
        return value is not None and value.type.dtype is DType.FLOAT16 and value.constant is None

    def _is_widened(self, number: int | None) -> bool:
        return number is not None and self._is_half(number) and self._root(number) in self._roots

    def _root(self, number: int) -> int:
        return self.line.values[number].same_as

    def _is_seed(self, step: KernelStep) -> bool:
        """Return whether a step is a convolution, or a product of more than a few rows."""
        if str(step.op) in CONVOLUTIONS:
            return True
        shape = self.line.values[step.outputs[0]].type.static_shape
        return str(step.op) in _PRODUCTS and prod(shape[:-1]) > self.few_rows

    def _can_widen(self, step: KernelStep) -> bool:
        """Return whether a step computes float16 numbers only, and may do so in float32."""
        if str(step.op) in _CASTS | _DECIDING or not all(map(self._is_half, step.outputs)):
            return False
        constants = (self.line.values[arg].constant for arg in step.args if arg is not None)
        is_large = any(array is not None and array.size >= _LARGE for array in constants)
        if is_large and not self._is_seed(step):
            return False
        given = self._wide_arguments(step)
        try:
            inferred = infer_call_type(step.call.op, given.args, step.call.attrs)
        except InvalidModelError:
            return False
        return inferred is not None and _types_of(inferred) == tuple(
            _wide_type(self.line.values[number].type) for number in step.outputs
        )

    def _wide_arguments(self, step: KernelStep) -> Call:
        """Return a call with variables of float32 in place of float16 arguments."""
        given = (
            expr
            if number is None or self.line.values[number].type.dtype is not DType.FLOAT16
            else Var(f"x{number}", checked_type=_wide_type(self.line.values[number].type))
            for number, expr in zip(step.args, step.call.args, strict=True)
        )
        return replace(step.call, args=tuple(given))

    def _in_float32(self, step: KernelStep) -> KernelStep:
        types = tuple(self.values[number].type for number in step.outputs)
        is_tuple = isinstance(step.call.checked_type, TupleType)
        type_: Type = TupleType(types) if is_tuple else types[0]
        args = tuple(None if number is None else self._as_float32(number) for number in step.args)
        return replace(step, call=replace(self._wide_arguments(step), checked_type=type_), args=args)

    def _as_float32(self, number: int) -> int:
        """Return the number of an argument in float32; other types stay."""
        value = self.line.values[number]
        if value.type.dtype is not DType.FLOAT16 or self._is_widened(number):
            return number
        if number not in self._wide:
            if value.constant is not None:
                constant = value.constant.astype(np.float32)
                self._wide[number] = self._add(_wide_type(value.type))
                self.values[-1] = replace(self.values[-1], constant=constant)
            elif value.same_as != number:
                root = self._as_float32(value.same_as)
                self._wide[number] = self._add(_wide_type(value.type), root)
            else:
                self._wide[number] = self._cast(number, DType.FLOAT32)
        return self._wide[number]

    def _as_half(self, number: int | None) -> int:
        """Return the number of a widened value that is rounded after all."""
        assert number is not None, "absent values have no type"
        if number not in self._narrow:
            root = self._root(number)
            if root == number:
                self._narrow[number] = self._cast(number, DType.FLOAT16)
            else:
                self._narrow[number] = self._add(self.line.values[number].type, self._as_half(root))
        return self._narrow[number]

    def _drops(self, step: KernelStep) -> bool:
        """Drop a Cast to float32 of a value that is stored so: return whether that was done."""
        (output,), arg = step.outputs[:1], step.args[0] if step.args else None
        is_cast = str(step.op) == "Cast" and self.values[output].type.dtype is DType.FLOAT32
        if not is_cast or arg is None or not self._is_widened(arg):
            return False
        root = self._root(arg)
        for number, value in enumerate(self.values):
            if value.same_as == output:
                self.values[number] = replace(value, same_as=root)
        return True

    def _cast(self, number: int, dtype: DType) -> int:
        """Add a Cast of a value, and return the number of its result."""
        type_ = self.values[number].type
        given = Var(f"x{number}", checked_type=type_)
        result = self._add(TensorType(type_.static_shape, dtype))
        self.steps.append(KernelStep(call("Cast", given, to=elem_type_of(dtype)), (number,), (result,)))
        return result

    def _add(self, type_: TensorType, same_as: int | None = None) -> int:
        self.values.append(RegionValue(type_, len(self.values) if same_as is None else same_as))
        return len(self.values) - 1


def _wide_type(type_: TensorType) -> TensorType:
    is_half = type_.dtype is DType.FLOAT16
    return TensorType(type_.static_shape, DType.FLOAT32) if is_half else type_


def _types_of(type_: Type) -> tuple[Type | None, ...]:
    return type_.fields if isinstance(type_, TupleType) else (type_,)
