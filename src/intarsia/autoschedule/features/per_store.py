"""Features of a loop function: a row of numbers for each buffer that it writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.features.arithmetic_intensity import intensity_curve
from intarsia.autoschedule.features.buffer_features import buffer_features
from intarsia.autoschedule.features.feature_names import GPU_FEATURES, MAX_BUFFERS, feature_names
from intarsia.autoschedule.features.loop_annotations import annotation_features
from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.machine_features import machine_features
from intarsia.autoschedule.features.operation_counts import COUNTS
from intarsia.autoschedule.features.reuse import LoopTouches
from intarsia.autoschedule.features.store_analysis import StoreAnalysis, analysed_stores
from intarsia.autoschedule.task.hardware_params import HardwareParams
from intarsia.ir import PrimFunc

_ON_CPU: Final = [0.0] + [1.0] * (len(GPU_FEATURES) - 1)


def per_store_features(
    function: PrimFunc,
    hardware: HardwareParams,
    max_buffers: int = MAX_BUFFERS,
    machine: Machine | None = None,
) -> NDArray[np.float32]:
    """A row for each buffer that a loop function writes, a column for each of `feature_names()` (Ansor).

    The function is one as `lower` gives it, before any pass: loops are still as the schedule has them, and
    vectorised and unrolled ones are marked and not yet written out. What the features say of guards, of
    scalars in registers and of choices is in `store_records`.

    Numbers are sign(x) * log2(abs(x) + 1); `is_gpu` and those that tell one of several kinds stay. Where a
    buffer is written by several statements, as an accumulator is, operations are added up and the rest is of
    the last one.

    Of what upstream's extractor gets wrong (its golden values hold): lines are divided by the extents of the
    loops that are skipped, not by the innermost one's; distinct lines are of the buffer itself, not of the
    last one, and runs go through all dimensions that are covered; distinct bytes are of all accesses, not
    of the first; positions of loops are told; products that are added count as `mad` too.

    Args:
        function: A loop function.
        hardware: What the lines of the cache are.
        max_buffers: How many buffers of a store have features.
        machine: If given, features follow that tell how well the loops fit it.

    Returns:
        Rows by columns, rows in the order of first stores; no row if nothing is stored.
    """
    stores = analysed_stores(function)
    return store_features(stores, unroll_steps(function), hardware, max_buffers, machine)


def unroll_steps(function: PrimFunc) -> float:
    """The hint up to which size loops are unrolled; 0 without one."""
    steps = function.attrs.get("auto_unroll_max_step", 0)
    return float(steps) if isinstance(steps, int) else 0.0


def store_features(
    stores: Iterable[StoreAnalysis],
    unroll: float,
    hardware: HardwareParams,
    max_buffers: int = MAX_BUFFERS,
    machine: Machine | None = None,
) -> NDArray[np.float32]:
    """As `per_store_features`, of what was found out of a function before.

    Args:
        stores: Of the function.
        unroll: Its hint for unrolling.
        hardware: What the lines of the cache are.
        max_buffers: How many buffers of a store have features.
        machine: If given, features follow that tell how well the loops fit it.
    """
    touches, counts, rows = LoopTouches(), dict[str, list[float]](), dict[str, list[float]]()
    for store in stores:
        touches.add(store)
        name = store.written.buffer.name
        before = counts.get(name, [0.0] * len(COUNTS))
        pairs = zip(before, store.record.counts, strict=True)
        counts[name] = [known + count * store.iterations for known, count in pairs]
        buffers = buffer_features(store, touches, hardware.cache_line_bytes, max_buffers)
        rows[name] = [
            *(*annotation_features(store), *_ON_CPU, *buffers),
            *(*intensity_curve(store), *_allocation(store)),
            *(store.iterations, len(store.loops), unroll),
            *(machine_features(store, machine) if machine is not None else ()),
        ]
    names = feature_names(max_buffers, machine is not None)
    values = np.array([counts[name] + row for name, row in rows.items()], np.float64)
    return _scaled(values.reshape(len(rows), len(names)), names)


def _allocation(store: StoreAnalysis) -> Sequence[float]:
    """Bytes; elements times iterations of the loops around; those; the store's for each of them."""
    buffer = store.record.buffer
    around = store.record.allocated.get(buffer.name)
    if around is None:
        return 0.0, 0.0, 0.0, 0.0
    elements, outer = prod(buffer.shape), prod(loop.extent for loop in around)
    bytes_ = elements * store.written.element_bytes
    return bytes_, elements * outer, outer, store.iterations / outer


def _scaled(values: NDArray[np.float64], names: Sequence[str]) -> NDArray[np.float32]:
    is_raw = np.array([name == "is_gpu" or "type.k" in name for name in names])
    logarithms = np.sign(values) * np.log2(np.abs(values) + 1)
    return np.where(is_raw, values, logarithms).astype(np.float32)
