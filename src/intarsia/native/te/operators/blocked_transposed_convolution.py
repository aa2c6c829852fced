"""Transposed convolutions of blocked tensors, as convolutions with stride 1 that share the results.

Each phase (te.operators.upsampling) is a dense convolution, without the zeros between elements of the input.
Phases with fewer taps than others leave out the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import if_then_else, logical_and
from intarsia.native.te.operators.blocked_convolution import pack_weight
from intarsia.native.te.operators.blocked_layout import (
    BLOCKED,
    TRANSPOSED,
    axis_names,
    padded_block,
)
from intarsia.native.te.operators.integer_sums import dot
from intarsia.native.te.operators.upsampling import Upsampling, weight_of_taps
from intarsia.native.te.operators.windows import spatial_names
from intarsia.native.te.tensor import Tensor


class WordSums(NamedTuple):
    """Padding and offsets of sums of words of bytes.

    Attributes:
        padding: Word of elements beyond the image.
        offset: Numbers (M / lanes, phases ..., lanes) to add to the sums of each phase, int32.
    """

    padding: int
    offset: Tensor


def blocked_transposed_convolution(
    x: Tensor,
    weight: Tensor,
    dimensions: Sequence[Upsampling],
    name: str,
    words: WordSums | None = None,
) -> Tensor:
    """Declare a transposed convolution (N, M / lanes, counts ..., lanes), by phases.

    Args:
        x: (N, C / ci, extents ..., ci).
        weight: Weights from `pack_transposed_weight`.
        dimensions: Upsamplings, one for each spatial dimension.
        name: Name of the result; ".phases" is appended for the convolutions, ".pad" for the padded input.
        words: Padding and offsets of words of bytes; None for float32.
    """
    rank = len(dimensions)
    by_phase = _phase_results(x, weight, dimensions, name, words)
    strides = [dimension.stride for dimension in dimensions]

    def joined(n: Expression, o: Expression, *rest: Expression) -> Expression:
        # Result p = stride * step + phase: each phase is one of the convolutions.
        *positions, lane = rest
        phases = [position % stride for position, stride in zip(positions, strides, strict=True)]
        steps = [position // stride for position, stride in zip(positions, strides, strict=True)]
        sums = by_phase[(n, o, *phases, *steps, lane)]
        return sums if words is None else sums + words.offset[(o, *phases, lane)]

    counts = (dimension.count for dimension in dimensions)
    return compute((x.shape[0], weight.shape[0], *counts, weight.shape[-1]), joined, name, axis_names(rank))


def _phase_results(
    x: Tensor, weight: Tensor, dimensions: Sequence[Upsampling], name: str, words: WordSums | None
) -> Tensor:
    """Declare the convolutions of the phases (N, M / lanes, strides ..., steps ..., lanes).

    Args:
        x: (N, C / ci, extents ..., ci).
        weight: Weights from `pack_transposed_weight`.
        dimensions: Upsamplings, one for each spatial dimension.
        name: Name of the transposed convolution.
        words: Padding and offsets of words of bytes; None for float32.
    """
    rank = len(dimensions)
    windows, padding = [dimension.window for dimension in dimensions], 0.0 if words is None else words.padding
    source = padded_block(x, windows, padding, f"{name}.pad")
    letters = spatial_names(rank)
    block, channel = reduce_axis(x.shape[1], "rb"), reduce_axis(weight.shape[-2], "rc")
    taps = tuple(
        reduce_axis(dimension.phase_taps, f"r{letter}")
        for dimension, letter in zip(dimensions, letters, strict=True)
    )

    def element(n: Expression, o: Expression, *rest: Expression) -> Reduction:
        phases, steps, lane = rest[:rank], rest[rank:-1], rest[-1]
        at = [
            dimension.tap_index(step, phase, tap.expression)
            for dimension, step, phase, tap in zip(dimensions, steps, phases, taps, strict=True)
        ]
        factors = source[(n, block, *at, channel)], weight[(o, *phases, block, *taps, channel, lane)]
        value = factors[0] * factors[1] if words is None else dot(*factors)
        has = [d.holds(phase, tap.expression) for d, phase, tap in zip(dimensions, phases, taps, strict=True)]
        conditions = [dimension for dimension in has if dimension is not None]
        if conditions:
            value = if_then_else(logical_and(*conditions), value, 0.0 if words is None else 0)
        return functions.sum(value, (block, *taps, channel))

    strides = (dimension.stride for dimension in dimensions)
    steps = (dimension.steps for dimension in dimensions)
    shape = (x.shape[0], weight.shape[0], *strides, *steps, weight.shape[-1])
    names = ("n", "o", *(f"p{letter}" for letter in letters), *letters, "v")
    return compute(shape, element, f"{name}.phases", names, {BLOCKED: TRANSPOSED})


def pack_transposed_weight(
    weight: npt.NDArray[Any], dimensions: Sequence[Upsampling], ci: int, lanes: int
) -> npt.NDArray[Any]:
    """Pack weights (C, M, taps ...) by blocks and phases.

    The result is (M / lanes, phases ..., blocks of ci, taps of a phase ..., ci or fewer, lanes).

    Args:
        weight: The weights.
        dimensions: Upsamplings, one for each spatial dimension.
        ci: Channels in a block of the input.
        lanes: Channels in a block of the result.
    """
    strides = [dimension.stride for dimension in dimensions]
    parts = [
        weight_of_taps(weight, [d.weights(r) for d, r in zip(dimensions, phases, strict=True)])
        for phases in product(*map(range, strides))
    ]
    by_phase = np.stack([pack_weight(part, ci, lanes) for part in parts], axis=1)
    return np.ascontiguousarray(by_phase.reshape(by_phase.shape[0], *strides, *by_phase.shape[2:]))
