"""Convolutions and products with constant weights as steps on bfloat16 numbers.

    Relu(...), Conv(r, weights)   ->   Relu(...), Cast(r, bfloat16), BfloatStep(c, weights)

A value that such a step reads is rounded in the kernel that computes it, and stored in half the bytes. Its
other readers widen it themselves, as they do with quantised values. Sums, and everything between the
products, stay in float32. A program in float32 is computed so only where its target has `-multiply_in`;
products of bfloat16 tensors always are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from intarsia.ir import Call, DType, TensorType, Var
from intarsia.native.graph.batched_integers import BatchedStep
from intarsia.native.graph.bfloat_gains import is_gain_in_blocks, is_gain_in_groups
from intarsia.native.graph.bfloat_matrices import Operand, PairProduct, needless_moves, operands, with_moves
from intarsia.native.graph.bfloat_steps import PAIR, BfloatStep, packed_pairs
from intarsia.native.graph.block_steps import BlockStep
from intarsia.native.graph.blocked_steps import POINTWISE
from intarsia.native.graph.dequantised import attribute
from intarsia.native.graph.integer_steps import IntegerStep, WordProduct, is_plain_gemm
from intarsia.native.graph.late_rounding import flushing_cast, with_late_roundings
from intarsia.native.graph.needless_roundings import without_needless_roundings
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.op import call
from intarsia.op.onnx_types import elem_type_of

_PRODUCTS: Final = ("Conv", "Gemm", "MatMul")
_CONVOLUTIONS: Final = ("Conv", "ConvTranspose")
_FEW_CHANNELS: Final = 4
"""Maximum number of input channels of convolutions that read plain float32, where pairs are no gain."""
_FEW_COLUMNS: Final = 8
"""Number of columns below which a product is left in float32: they fill no vector."""


def with_bfloat_steps(
    line: StraightLine,
    lanes: int,
    is_faster_in_floats: Callable[[Call], bool] = lambda _: False,
    *,
    narrows: bool,
    has_dot: bool = True,
) -> StraightLine:
    """Return a region whose convolutions and products multiply bfloat16 numbers. Linear in the region.

    Args:
        line: Region as it was read.
        lanes: Number of channels of a block; 0 if nothing is blocked, and convolutions stay as they are.
        is_faster_in_floats: Predicate: whether a convolution stays in float32 because that is faster.
        narrows: Whether operators on float32 are computed so as well.
        has_dot: Whether one instruction sums products: others widen computed matrices faster than words.
    """
    matrices = operands(line, narrows=narrows) if has_dot else {}
    rewriting = _Rewriting(line, lanes, is_faster_in_floats, narrows, has_dot, matrices)
    is_changed = rewriting.chosen or rewriting.widened or matrices
    return without_needless_roundings(with_late_roundings(rewriting.result())) if is_changed else line


@dataclass(eq=False)
class _Rewriting:
    """The region as it is written again, step by step.

    Attributes:
        line: Region as it was read.
        lanes: Number of channels of a block.
        is_faster_in_floats: Predicate of convolutions.
        narrows: Whether operators on float32 are computed so.
        has_dot: Whether one instruction sums products.
        matrices: Matrices of products of two computed ones, by position.
        chosen: Positions of the steps that multiply bfloat16 numbers.
        widened: Positions of convolutions of bfloat16 tensors that are computed in float32.
        values: Values, with those that are added.
        steps: Steps written so far.
    """

    line: StraightLine
    lanes: int
    is_faster_in_floats: Callable[[Call], bool]
    narrows: bool
    has_dot: bool
    matrices: Mapping[int, tuple[Operand, Operand]]
    chosen: frozenset[int] = field(init=False)
    widened: frozenset[int] = field(init=False)
    values: list[RegionValue] = field(init=False)
    steps: list[KernelStep] = field(default_factory=list)
    _kept: frozenset[int] = frozenset()
    _written: frozenset[int] = frozenset()
    _read: set[int] = field(default_factory=set)
    _joined: set[int] = field(default_factory=set)
    _rounded: dict[int, int] = field(default_factory=dict)
    _views: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = list(self.line.values)
        steps = self.line.steps
        self.chosen = frozenset(position for position, step in enumerate(steps) if self._is_product(step))
        behind_others = self._depthwise_behind_others()
        self.chosen -= behind_others
        self.widened = self._widened_steps() - self.chosen
        self._kept = frozenset(self.values[number].same_as for number in self.line.results)
        self._written = frozenset(number for step in steps for number in step.outputs)
        for number, value in enumerate(self.values):
            if value.same_as != number:
                self._views.setdefault(value.same_as, []).append(number)
        self._read = {self.values[steps[position].args[0] or 0].same_as for position in self.chosen}
        stored = [operand.source for pair in self.matrices.values() for operand in pair if operand.is_stored]
        self._read.update(self.values[number].same_as for number in stored)
        for position in reversed(range(len(steps))):
            step = steps[position]
            if str(step.op) == "Concat" and self._joins_bfloats(step):
                self._joined.add(position)
                self._read.update(self.values[arg].same_as for arg in step.args if arg is not None)

    def result(self) -> StraightLine:
        """Return the region with all steps written."""
        needless = needless_moves(self.line, self.matrices)
        for position, step in enumerate(self.line.steps):
            if position in needless:
                continue
            if position in self.matrices:
                self._append(self._multiplying_matrices(step, self.matrices[position]))
            elif position in self._joined:
                self._join(step)
            elif position in self.chosen:
                self._append(self._multiplying(step))
            elif position in self.widened:
                self._append(self._in_float32(step))
            else:
                self._append(self._with_wide_arguments(step))
        return StraightLine(self.values, self.steps, self.line.params, self.line.results)

    def _joins_bfloats(self, step: KernelStep) -> bool:
        """Return whether a Concat joins computed float32 values that only become bfloat16 numbers."""
        (output,) = step.outputs
        parts = [arg for arg in step.args if arg is not None]
        is_read = output in self._read and output not in self._kept
        return is_read and all(
            self.values[part].same_as == part and self._is_rounded_at_once(part) for part in parts
        )

    def _is_rounded_at_once(self, number: int) -> bool:
        """Return whether a value is only stored rounded: a step computes it, and it is no result."""
        is_float = self.values[number].type.dtype is DType.FLOAT32
        return is_float and number in self._written and number not in self._kept

    def _append(self, step: KernelStep) -> None:
        """Add a step; what it writes for products is rounded."""
        renamed = {
            output: self._add(self.values[output].type)
            for output in step.outputs
            if output in self._read and self._is_rounded_at_once(output)
        }
        outputs = tuple(renamed.get(output, output) for output in step.outputs)
        self.steps.append(replace(step, outputs=outputs) if renamed else step)
        for output, computed in renamed.items():
            self._round(computed, output)

    def _round(self, computed: int, root: int) -> None:
        """Add a Cast to bfloat16 of a value, which stands for another one and its views from now on."""
        type_ = self.values[computed].type
        given = Var("x", checked_type=type_)
        narrow = self._add(TensorType(type_.static_shape, DType.BFLOAT16))
        self.steps.append(KernelStep(flushing_cast(given), (computed,), (narrow,)))
        self._stand_in(root, narrow)

    def _stand_in(self, root: int, narrow: int) -> None:
        self._rounded[root] = narrow
        for view in self._views.get(root, ()):
            type_ = TensorType(self.values[view].type.static_shape, DType.BFLOAT16)
            self.values.append(RegionValue(type_, narrow))
            self._rounded[view] = len(self.values) - 1

    def _narrow(self, number: int) -> int:
        """Return the number of a value as bfloat16 numbers."""
        if self.values[number].type.dtype is DType.BFLOAT16:
            return number
        root = self.values[number].same_as
        if root not in self._rounded:
            self._round(root, root)
        return self._rounded[number]

    def _with_wide_arguments(self, step: KernelStep) -> KernelStep:
        """Return a step that reads float32, which it widens itself where only bfloat16 numbers are stored."""
        wide = {
            number: self._widened(number)
            for number in dict.fromkeys(step.args)
            if number is not None and self._is_stored_rounded(number)
        }
        if not wide:
            return step
        args = tuple(arg if arg is None else wide.get(arg, arg) for arg in step.args)
        return replace(step, args=args)

    def _is_stored_rounded(self, number: int) -> bool:
        return number in self._rounded and self._is_rounded_at_once(self.values[number].same_as)

    def _widened(self, number: int) -> int:
        narrow = self._rounded[number]
        given = Var("x", checked_type=self.values[narrow].type)
        wide = self._add(self.values[number].type)
        self.steps.append(KernelStep(call("Cast", given, to=elem_type_of(DType.FLOAT32)), (narrow,), (wide,)))
        return wide

    def _join(self, step: KernelStep) -> None:
        """Join rounded values."""
        numbers = tuple(self._narrow(arg) for arg in step.args if arg is not None)
        (output,), axis = step.outputs, attribute(step, "axis", 0)
        given = [Var(f"x{arg}", checked_type=self.values[arg].type) for arg in numbers]
        narrow = self._add(TensorType(self.values[output].type.static_shape, DType.BFLOAT16))
        joining = replace(call("Concat", *given, axis=axis), span=step.call.span)
        self.steps.append(KernelStep(joining, numbers, (narrow,)))
        self._stand_in(output, narrow)

    def _add(self, type_: TensorType, constant: Array | None = None) -> int:
        self.values.append(RegionValue(type_, len(self.values), constant))
        return len(self.values) - 1

    def _is_product(self, step: KernelStep) -> bool:
        """Return whether a step is computed as sums of products of bfloat16 numbers."""
        if str(step.op) not in _PRODUCTS or isinstance(
            step, BatchedStep | BlockStep | IntegerStep | WordProduct
        ):
            return False
        number, weight = step.args[:2]
        if number is None or weight is None or self.values[number].constant is not None:
            return False
        array, dtype = self.values[weight].constant, self.values[number].type.dtype
        is_narrowed = self.narrows and dtype is DType.FLOAT32
        if array is None or not (is_narrowed or dtype is DType.BFLOAT16) or DType.of(array) is not dtype:
            return False
        if not self._has_known_bias(step) or 0 in self.values[number].type.static_shape:
            return False
        if str(step.op) == "Conv":
            return self._is_blocked(step, array)
        is_matrix = array.ndim == 2 and len(self.values[number].type.static_shape) > 1
        if not is_matrix or (str(step.op) == "Gemm" and not is_plain_gemm(step)):
            return False
        depth, columns = array.shape[::-1] if attribute(step, "transB", 0) else array.shape
        return bool(depth > 0 and depth % PAIR == 0 and columns >= _FEW_COLUMNS)

    def _widened_steps(self) -> frozenset[int]:
        """Return the positions of convolutions of bfloat16 tensors by constant weights, for blocks."""
        return frozenset(
            position
            for position, step in enumerate(self.line.steps)
            if self.lanes and str(step.op) in _CONVOLUTIONS and self._is_narrow(step)
        )

    def _depthwise_behind_others(self) -> frozenset[int]:
        """Return the positions of depthwise convolutions of what is computed in float32 without words.

        Rounded in between, the values would only be widened again by both.
        """
        widened, wide, behind = self._widened_steps() - self.chosen, set[int](), set[int]()
        for position, step in enumerate(self.line.steps):
            roots = {self.values[arg].same_as for arg in step.args if arg is not None}
            is_wide = position in widened
            if position in self.chosen and str(step.op) == "Conv" and _is_depthwise(self.values, step):
                is_wide = not wide.isdisjoint(roots)
                behind |= {position} if is_wide else set()
            elif str(step.op) == "Transpose" or str(step.op) in POINTWISE:
                is_wide = not wide.isdisjoint(roots)
            wide.update(step.outputs if is_wide else ())
        return frozenset(behind)

    def _is_narrow(self, step: KernelStep) -> bool:
        """Return whether a step reads a bfloat16 tensor, and constants of the same type."""
        x, *constants = step.args
        is_read = x is not None and self.values[x].constant is None
        is_typed = is_read and self.values[x or 0].type.dtype is DType.BFLOAT16
        arrays = [self.values[number].constant for number in constants if number is not None]
        return is_typed and all(array is not None and DType.of(array) is DType.BFLOAT16 for array in arrays)

    def _in_float32(self, step: KernelStep) -> KernelStep:
        """Add a step on widened arguments, and return the one that rounds its result."""
        wide = tuple(None if number is None else self._as_float32(number) for number in step.args)
        (output,) = step.outputs
        sums = self._add(TensorType(self.values[output].type.static_shape, DType.FLOAT32))
        given = (
            expr if number is None else Var(f"x{number}", checked_type=self.values[number].type)
            for number, expr in zip(wide, step.call.args, strict=True)
        )
        computing = replace(step.call, args=tuple(given), checked_type=self.values[sums].type)
        self.steps.append(KernelStep(computing, wide, (sums,)))
        return KernelStep(flushing_cast(Var("x", checked_type=self.values[sums].type)), (sums,), (output,))

    def _as_float32(self, number: int) -> int:
        value = self.values[number]
        type_ = TensorType(value.type.static_shape, DType.FLOAT32)
        if value.constant is not None:
            return self._add(type_, value.constant.astype(np.float32))
        wide, given = self._add(type_), Var("x", checked_type=value.type)
        self.steps.append(KernelStep(call("Cast", given, to=elem_type_of(DType.FLOAT32)), (number,), (wide,)))
        return wide

    def _is_blocked(self, step: KernelStep, weight: Array) -> bool:
        filters, channels, *taps = weight.shape
        groups = attribute(step, "group", 1)
        if not self.lanes or filters * 2 < self.lanes or not 1 <= len(taps) <= 3:
            return False
        if (
            groups > 1
            and channels > 1
            and not is_gain_in_groups(step.call, weight.shape, self.lanes, has_dot=self.has_dot)
        ):
            return False
        if weight.dtype != np.float32:
            # Convolutions of bfloat16 tensors have no transforms, which take float32. Those without pairs of
            # channels widen what they read.
            return True
        if groups > 1 and channels == 1:
            return False
        if groups == 1 and channels <= _FEW_CHANNELS:
            return False
        is_gain = groups > 1 or is_gain_in_blocks(step, weight.shape, self.lanes)
        return is_gain and not self.is_faster_in_floats(step.call)

    def _has_known_bias(self, step: KernelStep) -> bool:
        """Return whether a step has no bias, or a constant one for each output channel."""
        number = step.args[2] if len(step.args) > 2 else None
        if number is None:
            return True
        bias, channels = self.values[number].constant, self._channels(step)
        if bias is None or bias.size not in (1, channels):
            return False
        return bias.size == 1 or bool(bias.shape[-1] == channels)

    def _channels(self, step: KernelStep) -> int:
        shape = self.values[step.outputs[0]].type.static_shape
        return shape[1] if str(step.op) == "Conv" else shape[-1]

    def _multiplying(self, step: KernelStep) -> KernelStep:
        """Return a product as a step on bfloat16 numbers, with the result of the same type."""
        x, weight, *rest = step.args
        assert x is not None, "products have an input"
        array = self.values[weight or 0].constant
        assert array is not None, "weights are constant"
        narrow = array.astype(DType.BFLOAT16.numpy)
        if attribute(step, "transB", 0):
            narrow = np.ascontiguousarray(narrow.T)
        packed = narrow if str(step.op) == "Conv" else packed_pairs(narrow)
        bias = None
        if rest and rest[0] is not None:
            given = self.values[rest[0]].constant
            assert given is not None, "biases are constant"
            bias = np.broadcast_to(given.astype(np.float32).reshape(-1), (self._channels(step),))
        args = self._narrow(x), self._add(TensorType(packed.shape, DType.of(packed)), packed)
        return self._rounding(BfloatStep(step.call, args, step.outputs, bias))

    def _multiplying_matrices(self, step: KernelStep, pair: tuple[Operand, Operand]) -> KernelStep:
        """Return a product of computed matrices as one of words, with the result of the same type."""
        numbers = [
            with_moves(
                operand,
                self._narrow(operand.source) if operand.is_stored else operand.source,
                self.values,
                self.steps,
            )
            for operand in pair
        ]
        are_words = pair[0].are_words, pair[1].are_words
        return self._rounding(PairProduct(step.call, tuple(numbers), step.outputs, are_words))

    def _rounding(self, step: KernelStep) -> KernelStep:
        """Return a step with sums in float32; add it for a bfloat16 result, and return a rounding."""
        (output,) = step.outputs
        if self.values[output].type.dtype is DType.FLOAT32:
            return step
        wide = TensorType(self.values[output].type.static_shape, DType.FLOAT32)
        sums = self._add(wide)
        self.steps.append(replace(step, outputs=(sums,)))
        given_sums = Var("x", checked_type=wide)
        return KernelStep(flushing_cast(given_sums), (sums,), (output,))


def _is_depthwise(values: Sequence[RegionValue], step: KernelStep) -> bool:
    """Return whether a convolution of a bfloat16 tensor convolves each channel on its own."""
    x, weight = step.args[:2]
    shape = values[weight or 0].type.static_shape
    return values[x or 0].type.dtype is DType.BFLOAT16 and shape[1] == 1 < attribute(step, "group", 1)
