"""Products of two computed matrices of quantised numbers, such as those of attention, by words of bytes.

    sum of (a - za) * (b - zb)  =  dot(a, b) - za * sum of b - zb * sum of a + K * za * zb

Bytes of a are unsigned, those of b signed; sums of columns and rows are only taken where a zero point is not
0. The right matrix is packed in words where panels of it are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from intarsia.ir import DType
from intarsia.native.graph.dequantised import Dequantised
from intarsia.native.graph.integer_steps import HALF, WORD
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.step_declaration import StepDeclaration
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te import Tensor
from intarsia.native.te.operators.batched_words import Zero, batched_product, is_zero
from intarsia.native.te.operators.integer_sums import words_of_bytes

_MOST_SUMMANDS: Final = (2**31 - 1) // (4 * 255 * 128)
"""Maximum number of products of a sum whose four parts int32 holds for all bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchedStep(KernelStep):
    """A MatMul of bytes by bytes, with the result in float32, or a MatMulInteger with that in int32.

    `args` are the bytes, the left ones unsigned, and the zero points that are computed; None for others.

    Attributes:
        zeros: Zero points: of the unsigned bytes of the left matrix, and of the signed ones of the right; or
            what is to be added to computed ones, as those are of bytes as they were given.
        scale: Product of both scales; None for sums in int32.
    """

    zeros: tuple[int, int]
    scale: np.float32 | None


def are_matrices(left: RegionValue, right: RegionValue) -> bool:
    """Return whether two values are computed matrices, perhaps of a batch, whose products int32 holds."""
    shapes = left.type.static_shape, right.type.static_shape
    are_computed = left.constant is None and right.constant is None
    are_full = all(len(shape) > 1 and 0 not in shape for shape in shapes)
    return are_computed and are_full and shapes[0][-1] <= _MOST_SUMMANDS


def multiplies_matrices(
    step: KernelStep, x: Dequantised, y: Dequantised, values: Sequence[RegionValue]
) -> bool:
    """Return whether a step is a product of computed matrices of quantised numbers, each with one scale."""
    has_one_scale = x.scale.size == y.scale.size == 1
    return str(step.op) == "MatMul" and has_one_scale and are_matrices(values[x.number], values[y.number])


def batched_step(
    step: KernelStep, left: tuple[int, int], x: Dequantised, y: Dequantised, values: Sequence[RegionValue]
) -> BatchedStep:
    """Return a product of matrices as a step on bytes.

    Args:
        step: The product.
        left: Number of the unsigned bytes of the left matrix, and their zero point.
        x: The left matrix.
        y: The right matrix.
        values: Values of the region.
    """
    number, zero = left
    offset = HALF if values[y.number].type.dtype is DType.UINT8 else 0
    zeros = zero, int(y.zero[0]) - offset
    return BatchedStep(
        step.call, (number, y.number), step.outputs, zeros, np.float32(x.scale[0] * y.scale[0])
    )


@dataclass(eq=False)
class BatchedIntegers(StepDeclaration):
    """Declares a product of matrices of bytes."""

    step: BatchedStep

    def result(self) -> Tensor:
        """Declare the result, and record its placeholders."""
        number, value = self.argument(0)
        depth = value.type.static_shape[-1]
        is_read_in_words = number not in self.tensors and depth % WORD == 0
        zeros = self._zero(0), self._zero(1)
        left = None if is_zero(zeros[1]) and is_read_in_words else self.tensor_of(0)
        if is_read_in_words:
            words = self.read_words(0, WORD)
        else:
            assert left is not None, "declared above"
            words = words_of_bytes(left, f"{self.name}.left")
        return batched_product(words, left, self.tensor_of(1), zeros, self.step.scale, self.name)

    def _zero(self, side: int) -> Zero:
        """Return the zero point of a matrix."""
        position, number = side + 2, self.step.zeros[side]
        if len(self.step.args) <= position or self.step.args[position] is None:
            return number
        given = self.tensor_of(position)
        zero = given[(0,) * len(given.shape)].astype(DType.INT32)
        return zero + number if number else zero
