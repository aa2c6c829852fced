"""Products with constant weights of 4 bits by sums of bytes: float32 as integers of three digits.

    x = unit * (digit0 + 256 * digit1 + 65536 * digit2),   digits from -128 to 127

Each block of a row has its unit: its largest magnitude is 127 * 65536 units, so that rounding to whole units
changes less than float32's own rounding of that number. Numbers of 4 bits times digits are summed exactly in
int32, four at a time by an instruction; a look-up and a product in float32 for each number take twice the
instructions. Numbers below 1e-30 count as 0, and a block with an infinity or NaN makes its results NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.op_attrs import BLOCK_SUMS
from intarsia.native.te.operators.integer_sums import dot, word_of
from intarsia.native.te.operators.scalar_functions import absolute
from intarsia.native.te.tensor import Tensor

DIGITS: Final = 3
_BASE_BITS: Final = 8
_LARGEST: Final = 127.0 * 65536
"""Units of the largest magnitude of a block: its last digit is 127."""
_LEAST: Final = 1e-30
"""Magnitude below which a block counts as 0: the reciprocal of its unit would overflow."""
_PLANES: Final = 2
"""Words of 4 bytes that a word of 8 numbers becomes: those at even, and those at odd positions."""
_NIBBLES: Final = 0x0F0F0F0F


def digit_sums(
    x: Tensor, words: Tensor, scale: Tensor, offset: tuple[Tensor, Tensor] | None, middle: int, name: str
) -> Tensor:
    """Declare the product (..., panels, columns of a panel) of float32 by numbers of 4 bits.

    Args:
        x: Left matrix (..., K), K being the depth of the words.
        words: Words (panels, K / 8, columns of a panel), int32.
        scale: Scales (panels, blocks, columns of a panel).
        offset: Sums of the rows of x by blocks, and numbers like the scales that they are multiplied by and
            subtracted with; None for none.
        middle: Number to subtract from the numbers of the words.
        name: Name of the operation.
    """
    panels, blocks, lanes = scale.shape
    unit = _units(x, blocks, f"{name}.unit")
    digits = _digit_words(x, unit, f"{name}.digit")
    shifts = _shifts(digits, middle, f"{name}.shift")
    parts = _sums_of_digits(digits, words, f"{name}.part")
    b = reduce_axis(blocks, "rb")

    def element(*i: Expression) -> Reduction:
        *row, panel, lane = i
        total = functions.const(0.0)
        for digit in reversed(range(DIGITS)):
            whole = parts[(*row, panel, b, digit, lane)] - shifts[(*row, b, digit)]
            total = total * float(1 << _BASE_BITS) + whole.astype(DType.FLOAT32)
        value = total * (scale[panel, b, lane] * unit[(*row, b)])
        if offset is None:
            return functions.sum(value, b)
        sums, factors = offset
        return functions.sum(value - sums[(*row, b)] * factors[panel, b, lane], b)

    shape = (*x.shape[:-1], panels, lanes)
    return compute(shape, element, f"{name}.sums", _names(x, "pv"), {BLOCK_SUMS: DIGITS})


def _units(x: Tensor, blocks: int, name: str) -> Tensor:
    """Declare the unit of each block of a row; NaN for a block with a number that is not finite."""
    size = x.shape[-1] // blocks
    k, j = reduce_axis(size, "rk"), reduce_axis(size, "rj")
    shape = (*x.shape[:-1], blocks)

    def largest(*i: Expression) -> Reduction:
        return functions.max(absolute(x[(*i[:-1], i[-1] * size + k.expression)]), k)

    def lost(*i: Expression) -> Reduction:
        return functions.sum(x[(*i[:-1], i[-1] * size + j.expression)] * 0.0, j)

    most = compute(shape, largest, f"{name}.most")
    others = compute(shape, lost, f"{name}.lost")
    return compute(shape, lambda *i: (most[i] + others[i]) * (1.0 / _LARGEST), name)


def _digit_words(x: Tensor, unit: Tensor, name: str) -> Tensor:
    """Declare words (..., blocks, words of a block, planes, digits) of four digits of x, int32."""
    blocks = unit.shape[-1]
    size = x.shape[-1] // blocks

    def reciprocal(*i: Expression) -> Expression:
        is_large = unit[i] > _LEAST / _LARGEST
        return functions.select(is_large, 1.0 / functions.select(is_large, unit[i], 1.0), 0.0)

    factor = compute(unit.shape, reciprocal, f"{name}.factor")

    def whole(*i: Expression) -> Expression:
        *row, block, k = i
        product = x[(*row, block * size + k)] * factor[(*row, block)]
        return functions.call("round_even", product).astype(DType.INT32)

    wholes = compute((*unit.shape, size), whole, f"{name}.whole")

    def element(*i: Expression) -> Expression:
        *row, block, word, plane, digit = i
        result = functions.const(0, DType.INT32)
        for byte in range(4):
            number = wholes[(*row, block, word * 8 + 2 * byte + plane)]
            result = result + functions.call(
                "shift_left", _digit(number, digit), functions.const(_BASE_BITS * byte, DType.INT32)
            )
        return result

    return compute((*unit.shape, size // 8, _PLANES, DIGITS), element, name)


def _digit(number: Expression, digit: Expression) -> Expression:
    """Return the lowest eight bits of a digit of a whole number.

    A digit of 128 and more counts as one less 256, and carries 1 into the next one: what carries of the lower
    digits is a half of each, 0, 0x80 and 0x8080.
    """
    bits = (digit * _BASE_BITS).astype(DType.INT32)
    halves = functions.call(
        "shift_right", functions.const(0x8080, DType.INT32), functions.const(16, DType.INT32) - bits
    )
    carried = functions.call("shift_right", number + halves, bits)
    return functions.call("bit_and", carried, functions.const(255, DType.INT32))


def _shifts(digits: Tensor, middle: int, name: str) -> Tensor:
    """Declare the sums (..., blocks, digits) of the digits of a block, times the middle, int32."""
    *outer, count, planes, last = digits.shape
    w, plane = reduce_axis(count, "rw"), reduce_axis(planes, "rj")
    ones = functions.const(word_of(1), DType.INT32)

    def total(*i: Expression) -> Reduction:
        return functions.sum(dot(ones, digits[(*i[:-1], w.expression, plane.expression, i[-1])]), (w, plane))

    totals = compute((*outer, last), total, f"{name}.total")
    return compute(totals.shape, lambda *i: totals[i] * functions.const(middle, DType.INT32), name)


def _sums_of_digits(digits: Tensor, words: Tensor, name: str) -> Tensor:
    """Declare the sums (..., panels, blocks, digits, columns of a panel) of numbers times digits, int32."""
    *outer, blocks, count, planes, last = digits.shape
    panels, _, lanes = words.shape
    w, plane = reduce_axis(count, "rw"), reduce_axis(planes, "rj")

    def element(*i: Expression) -> Reduction:
        *row, panel, block, digit, lane = i
        lowest = functions.call(
            "shift_right",
            words[panel, block * count + w.expression, lane],
            (plane.expression * 4).astype(DType.INT32),
        )
        nibbles = functions.call("bit_and", lowest, functions.const(_NIBBLES, DType.INT32))
        word = digits[(*row, block, w.expression, plane.expression, digit)]
        return functions.sum(dot(nibbles, word), (w, plane))

    return compute((*outer, panels, blocks, last, lanes), element, name, _names_of_rows(len(outer), "pbdv"))


def _names(x: Tensor, letters: str) -> Sequence[str]:
    return _names_of_rows(len(x.shape) - 1, letters)


def _names_of_rows(rows: int, letters: str) -> Sequence[str]:
    return (*(f"r{axis}" for axis in range(rows)), *letters)
