"""Convolutions that are faster on plain tensors: those whose blocks of filters would be mostly zeros.

On plain tensors, pixels of a row fill vectors whatever the number of filters (schedule/channels_first), but
what is blocked around the convolution is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from intarsia.native.graph.blocked_steps import form_of
from intarsia.native.graph.convolution_algorithm import (
    ConvolutionAlgorithms,
    estimated_costs,
    transformable_shape,
)
from intarsia.native.graph.convolution_form import ConvolutionForm, ConvolutionKind
from intarsia.native.graph.group_form import COPY_COST_OF_PLAIN
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.machine.relative_costs import RelativeCosts
from intarsia.native.te.operators import ComputeCall, compute_call_of
from intarsia.native.te.operators.column_phases import has_column_phases
from intarsia.native.te.operators.windows import windows_of
from intarsia.native.te.operators.winograd import TAPS

# Costs of plain kernels in multiplications of whole vectors, measured on 4 to 256 channels and rows of 14 to
# 256 pixels (Zen 5, AVX-512), where 85 to 95 % of the peak are reached with at least 4 filters in a group.
_MULTIPLICATION_COST: Final = 1.08
_PIXEL_COST: Final = 0.6
"""Cost of loading a vector of pixels, which the filters of a tile share."""
_FILTERS_PER_LANE: Final = 0.5
"""Maximum number of filters that share loads: 8 with 32 registers of 16 lanes, 4 with 16 registers of 8."""
_SPLIT_COST: Final = 128.0
"""Cost of splitting the columns of an element's row into phases, times the lanes of a vector: vectors of 16
lanes are shuffled by one instruction (6 multiplications by measurement), those of 8 by more (17 to 23)."""
_LEAST_GAIN: Final = 1.2
"""Ratio of the estimates from which plain tensors are chosen; blocked ones suit what follows."""


def is_faster_plain(
    steps: Sequence[KernelStep],
    values: Sequence[RegionValue],
    lanes: int,
    algorithms: ConvolutionAlgorithms,
    costs: RelativeCosts,
    *,
    ends_plain: bool,
) -> bool:
    """Return whether a group with one convolution is estimated to be faster on plain tensors.

    Args:
        steps: Steps in order; the last one computes the only result.
        values: Values so far, with their chosen layouts.
        lanes: Number of channels of a block, which fill a vector.
        algorithms: Algorithms of convolutions that Winograd can compute.
        costs: Costs of the machine.
        ends_plain: Whether nothing reads the result in blocks.
    """
    convolutions = [step for step in steps if str(step.op) == "Conv"]
    form = form_of(convolutions[0], values, lanes) if len(convolutions) == 1 else None
    if (
        form is None
        or form.kind is ConvolutionKind.DEPTHWISE
        or not _has_plain_kernel(convolutions[0], lanes)
    ):
        return False
    (step,) = convolutions
    assert step.args[0] is not None
    given, described = values[step.args[0]].order, compute_call_of(step.call, "conv")
    read, written = prod(described.input(0).shape), prod(described.shape)
    products = written * prod(described.input(1).shape[1:])
    needed = None if form.kind is ConvolutionKind.OF_PLAIN else form.source
    if form.kind is ConvolutionKind.BY_TABLE and given is not None:
        needed = given
    copied_to_blocks = read * (given != needed) + written * ends_plain
    copied_to_plain = read * (given is not None) + written * (not ends_plain)
    split = read * _SPLIT_COST / lanes if _splits_columns(step) else 0.0
    blocked = products * _blocked_cost(step, form, algorithms, costs) + COPY_COST_OF_PLAIN * copied_to_blocks
    plain = products * _plain_cost(described, lanes) + COPY_COST_OF_PLAIN * copied_to_plain + split
    return plain * _LEAST_GAIN < blocked


def _has_plain_kernel(step: KernelStep, lanes: int) -> bool:
    """Return whether the plain kernel of a convolution reads whole vectors of pixels, for several taps."""
    described = compute_call_of(step.call, "conv")
    taps = described.input(1).shape[2:]
    return prod(taps) > 1 and described.shape[-1] * 2 >= lanes


def _splits_columns(step: KernelStep) -> bool:
    """Return whether the plain kernel of a convolution copies the input with its columns in phases."""
    described = compute_call_of(step.call, "conv")
    taps = described.input(1).shape[2:]
    return has_column_phases(windows_of(described, described.input(0).shape[2:], taps))


def _blocked_cost(
    step: KernelStep, form: ConvolutionForm, algorithms: ConvolutionAlgorithms, costs: RelativeCosts
) -> float:
    """Return the cost of a multiplication on blocked tensors: zeros cost as much, and Winograd saves some."""
    filters, read = compute_call_of(step.call, "conv").input(1).shape[:2]
    waste = len(form.result.places) / filters
    if form.kind is not ConvolutionKind.BLOCKED:
        return waste
    # A block of several small groups multiplies the channels of all of them.
    waste *= len(form.source.places) / form.groups / read
    waste *= max(1.0, form.result.lanes * form.groups / len(form.result.places))
    shape = transformable_shape(step.call)
    if shape is None or not algorithms.tile(shape, costs):
        return waste
    products = prod(compute_call_of(step.call, "conv").shape[1:]) * read * TAPS**2
    padded = shape._replace(
        input_channels=len(form.source.places), output_channels=len(form.result.places), groups=form.groups
    )
    return min(waste, min(estimated_costs(padded, costs).values()) / products)


def _plain_cost(call: ComputeCall, lanes: int) -> float:
    """Return the cost of a multiplication on plain tensors: the last vector of a row is not full."""
    filters, columns = call.shape[1] // call.integer("group"), call.shape[-1]
    cost = _MULTIPLICATION_COST + _PIXEL_COST / min(filters, max(1, lanes * _FILTERS_PER_LANE))
    return cost * -(-columns // lanes) * lanes / columns
