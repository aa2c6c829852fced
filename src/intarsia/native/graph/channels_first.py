"""Convolutions that are faster on plain tensors: those whose blocks of filters would be mostly zeros.

On plain tensors, pixels of a row fill vectors whatever the number of filters (schedule/channels_first), but
what is blocked around the convolution is copied. Depthwise convolutions between plain tensors are computed
there by rows (schedule/row_schedule), without copies to blocks and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from intarsia.native.graph.blocked_steps import form_of, is_narrow
from intarsia.native.graph.convolution_algorithm import (
    ConvolutionAlgorithms,
    estimated_costs,
    transformable_shape,
)
from intarsia.native.graph.convolution_form import ConvolutionForm, ConvolutionKind
from intarsia.native.graph.group_form import COPY_COST_OF_PLAIN, MOST_PLAIN_CHANNELS, ROW_COST
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.machine.relative_costs import RelativeCosts
from intarsia.native.te.operators import ComputeCall, compute_call_of
from intarsia.native.te.operators.column_phases import has_column_phases
from intarsia.native.te.operators.windows import windows_of
from intarsia.native.te.operators.winograd import TAPS
from intarsia.op.window import AxisWindow

# Costs of plain kernels in multiplications of whole vectors, measured on 4 to 256 channels and rows of 14 to
# 256 pixels (Zen 5, AVX-512), where 85 to 95 % of the peak are reached with at least 4 filters in a group.
_PIXEL_COST: Final = 0.6
"""Cost of loading a vector of pixels, which the filters of a tile share."""
_STEP_COST: Final = 2.0
"""Overhead of a reduction step: counters and branches."""
_FILTERS_PER_LANE: Final = 0.5
"""Maximum number of filters that share loads: 8 with 32 registers of 16 lanes, 4 with 16 registers of 8."""
_SUMS_PER_LANE: Final = 1.5
"""Maximum number of vectors of sums: 24 with 32 registers of 16 lanes, 12 with 16 registers of 8."""
_MOST_ROWS: Final = 6
_MOST_VECTORS: Final = 4
_SPLIT_COST: Final = 128.0
"""Cost of splitting the columns of an element's row into phases, times the lanes of a vector: vectors of 16
lanes are shuffled by one instruction (6 multiplications by measurement), those of 8 by more (17 to 23).

It stays a constant: what a shuffle costs is no value of the machine model, which has loads and multiply-adds.
"""
_PADDING_BYTES: Final = 8
"""Bytes that an element of the padded copy moves: it is read once and written once, as float32."""
_REFERENCE_RATE: Final = 0.5
"""Multiplications for each byte from the second-level cache on the reference machine: Zen 3 starts two of 8
lanes in a cycle, in which 32 bytes arrive. `RelativeCosts.second` relates other machines to it."""
_FEW_LANES: Final = 8
"""Lanes of vectors that are not masked for free: a remainder is cut into narrower ones."""
_LEAST_GAIN: Final = 1.2
"""Ratio of the estimates from which plain tensors are chosen; blocked ones suit what follows."""
_LEAST_GAIN_ALONE: Final = 0.9
"""The same for convolutions of one group between plain tensors, where nothing blocked follows. Of 38 such
layers of 17 to 75 filters, the 19 with estimates from 0.9 on gain 1.04 to 1.46 by plain tensors, and most
below it lose (Zen 4, AVX-512 and AVX2)."""


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
        or _multiplies_words(convolutions[0], values)
        or not has_plain_kernel(convolutions[0], lanes)
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
    if form.kind is ConvolutionKind.DEPTHWISE:
        # Others copy their padded input in blocks too.
        split += _PADDING_BYTES * _REFERENCE_RATE * costs.second * _padded_size(step)
    blocked = products * _blocked_cost(step, form, algorithms, costs) + COPY_COST_OF_PLAIN * copied_to_blocks
    plain = products * _plain_cost(described, lanes, costs) + COPY_COST_OF_PLAIN * copied_to_plain + split
    is_alone = given is None and ends_plain and described.integer("group") == 1
    return plain * (_LEAST_GAIN_ALONE if is_alone else _LEAST_GAIN) < blocked


def _multiplies_words(step: KernelStep, values: Sequence[RegionValue]) -> bool:
    """Return whether the weights are narrow numbers, which are multiplied as words in blocks only."""
    weight = None if step.args[1] is None else values[step.args[1]].constant
    return weight is not None and is_narrow(weight)


def has_plain_kernel(step: KernelStep, lanes: int) -> bool:
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
    if form.kind is ConvolutionKind.DEPTHWISE:
        return waste * _read_share(step)  # taps that read padding are left out
    if form.kind is not ConvolutionKind.BLOCKED:
        is_in_rows = form.kind is ConvolutionKind.OF_PLAIN and read > MOST_PLAIN_CHANNELS
        return waste * ROW_COST if is_in_rows else waste
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


def _padded_size(step: KernelStep) -> int:
    """Return the number of elements of the padded input of a convolution; 0 without padding."""
    described = compute_call_of(step.call, "conv")
    shape = described.input(0).shape
    windows = windows_of(described, shape[2:], described.input(1).shape[2:])
    if all(window.is_inside for window in windows):
        return 0
    return prod((*shape[:2], *(window.reach for window in windows)))


def _read_share(step: KernelStep) -> float:
    """Return the share of the taps of a convolution that read the image, not its padding."""
    described = compute_call_of(step.call, "conv")
    windows = windows_of(described, described.input(0).shape[2:], described.input(1).shape[2:])
    return prod(AxisWindow(w.extent, w.count, w.taps, w.stride, w.dilation, w.begin).share for w in windows)


def _plain_cost(call: ComputeCall, lanes: int, costs: RelativeCosts) -> float:
    """Return the cost of a multiplication on plain tensors: the last vector of a row is not full."""
    _, filters, *outer, columns = call.shape
    shared = filters // call.integer("group")
    # Depthwise ones are computed by rows, which cut a remainder into narrower vectors.
    vectors = _vectors(columns, lanes) if shared == 1 else -(-columns // lanes)
    rows = outer[-1] if outer else 1
    shared = min(shared, max(1, int(lanes * _FILTERS_PER_LANE)))
    sums = min(shared * min(rows, _MOST_ROWS) * min(vectors, _MOST_VECTORS), int(lanes * _SUMS_PER_LANE))
    cost = max(1.0, costs.sums / sums) + _PIXEL_COST / shared + _STEP_COST / sums
    return cost * vectors * lanes / columns


def _vectors(columns: int, lanes: int) -> int:
    """Return the number of vectors of a row; narrower ones of a remainder count as whole ones."""
    whole, rest = divmod(columns, lanes)
    if not rest:
        return whole
    return whole + (1 if lanes > _FEW_LANES else 1 + rest.bit_count())
