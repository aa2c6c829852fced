"""Kinds of input sets: some faults show on one kind only.

Of 27 small faults of operators on floating-point numbers, N(0, 1) finds 13; with rows of very different
magnitude, zeros, ties and offsets it is 25 (docs/judge.md). A softmax that does not subtract its maximum
needs large numbers, a variance in one pass an offset, the wrong one of two equal maxima needs ties.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ml_dtypes import iinfo

from intarsia.ir import Function
from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.inputs.integer_use import UNKNOWN, IntegerUse, integer_uses
from intarsia.measure.inputs.known_shapes import with_shapes
from intarsia.measure.inputs.random_inputs import declared_ranges
from intarsia.measure.string_inputs import vocabularies

Array = npt.NDArray[Any]

_OCTAVES: Final = 10
"""Rows of LARGE inputs are scaled by 2**-10 to 2**10."""
_OUTLIER: Final = 1e3
"""Factor of the one outlier of LARGE inputs."""
_OFFSET: Final = 1e3
"""Offset of some rows of EDGES inputs: shows a variance computed in one pass."""
_LARGE_INTEGER: Final = 1000
_BEYOND_INT32: Final = 2**33 + 1

_SIZES: Final = (1.0, 1.0, 2.0**-4, 2.0**-8)
"""Scale of floating-point numbers for each attempt."""

ATTEMPTS: Final = len(_SIZES)


class InputKind(StrEnum):
    """The kind of an input set."""

    ORDINARY = "ordinary"
    LARGE = "large"
    EDGES = "edges"


def input_set(
    function: Function, ordinary: Mapping[str, Array], kind: InputKind, seed: int = 0, attempt: int = 0
) -> dict[str, Array]:
    """Draw arrays of a kind for the parameters of a function.

    Args:
        function: The program.
        ordinary: Arrays of the right shapes and types, with valid integers.
        kind: LARGE: floating-point numbers with heavy tails, rows of different magnitudes; integers from both
            ends of their range. EDGES: zeros, ties, negative numbers, offsets; the least integers. Strings
            and truth values are drawn anew.
        seed: Equal seeds give equal arrays.
        attempt: Number of the attempt below `ATTEMPTS`, for programs that fail on extreme numbers: from 1 on
            without the limits of integer types, from 2 on with floating-point numbers scaled down, and with
            the
            integers of `ordinary` where their use is unknown.
    """
    if kind is InputKind.ORDINARY:
        return dict(ordinary)
    generator = np.random.default_rng((seed, list(InputKind).index(kind)))
    shapes = {name: array.shape for name, array in ordinary.items()}
    uses = integer_uses(with_shapes(function, shapes))
    uses |= {name: IntegerUse(low, high) for name, (low, high) in declared_ranges(function).items()}
    words = vocabularies(function)
    return {
        name: words[name].draw(array.shape, generator)
        if name in words
        else _draw(array, kind, uses.get(name, UNKNOWN), generator, attempt)
        for name, array in ordinary.items()
    }


def _draw(
    array: Array, kind: InputKind, use: IntegerUse, generator: np.random.Generator, attempt: int
) -> Array:
    size = _SIZES[attempt]
    match element_kind(array.dtype):
        case ElementKind.FLOAT:
            values = _FLOATS[kind](array.shape, generator) * size
            return np.clip(values, *_limits(array.dtype)).astype(array.dtype)
        case ElementKind.COMPLEX:
            parts = [_FLOATS[kind](array.shape, generator) * size for _ in range(2)]
            return np.asarray(parts[0] + 1j * parts[1]).astype(array.dtype)
        case ElementKind.INTEGER if array.dtype.kind == "b":
            return generator.random(array.shape) < (0.9 if kind is InputKind.LARGE else 0.1)
        case ElementKind.INTEGER if use.is_certain:
            return _draw_in_range(array, kind, use, generator)
        case ElementKind.INTEGER if size == 1.0:
            return _draw_integers(array, kind, use, generator, has_limits=attempt == 0)
        case _:
            return array


def _draw_in_range(array: Array, kind: InputKind, use: IntegerUse, generator: np.random.Generator) -> Array:
    if kind is InputKind.LARGE:
        ends = np.array([use.low, use.high - 1])
        return generator.choice(ends, array.shape).astype(array.dtype)
    width = max(1, use.high - use.low)  # ties, most of them at the low end
    return (use.low + generator.geometric(0.5, array.shape) % width).astype(array.dtype)


def _draw_integers(
    array: Array, kind: InputKind, use: IntegerUse, generator: np.random.Generator, *, has_limits: bool
) -> Array:
    limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else iinfo(array.dtype)
    least = limits.min if use.least is None else max(limits.min, use.least)
    most = limits.max if use.most is None else min(limits.max, use.most)
    if kind is InputKind.LARGE:
        middle = min(max(0, least), most)
        low, high = max(least, middle - _LARGE_INTEGER), min(most, middle + _LARGE_INTEGER)
        return generator.integers(low, high, array.shape, endpoint=True).astype(array.dtype)
    # Beyond 32 bits where there are 64, and where float64 has gaps: computing with fewer bits shows.
    edges = [0, 1, -1, min(limits.max // 2, _BEYOND_INT32)]
    edges += [limits.min, limits.max] if has_limits else []
    chosen = dict.fromkeys(min(max(edge, least), most) for edge in edges)
    return generator.choice(np.array(list(chosen), array.dtype), array.shape)


def _draw_large(shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Heavy tails (Student's t with 3 degrees), rows scaled by 2**-10 to 2**10, one number times 1000."""
    values = generator.standard_t(3, shape)
    rows = (*shape[:-1], 1) if len(shape) > 1 else shape
    values = np.asarray(values * 2.0 ** generator.uniform(-_OCTAVES, _OCTAVES, rows))
    if values.size:
        values.reshape(-1)[generator.integers(values.size)] *= _OUTLIER
    return values


def _draw_edges(shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Interleaved rows: zeros, ones, negative numbers, an offset of 1000, ties, small numbers, N(0, 1)."""
    values = np.asarray(generator.standard_normal(shape))
    rows = values.reshape(-1, shape[-1]) if len(shape) > 1 and shape[-1] else values.reshape(-1, 1)
    rows[0::7] = 0.0
    rows[1::7] = 1.0
    rows[2::7] = -np.abs(rows[2::7])
    rows[3::7] += _OFFSET
    rows[4::7] = np.rint(2 * rows[4::7]) / 2
    rows[5::7] *= 1e-3
    return rows.reshape(shape)


_FLOATS: Final = {InputKind.LARGE: _draw_large, InputKind.EDGES: _draw_edges}


def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the least and the largest finite number of a type; infinities where float64 draws fit anyway."""
    return (-65504.0, 65504.0) if dtype.name == "float16" else (-np.inf, np.inf)
