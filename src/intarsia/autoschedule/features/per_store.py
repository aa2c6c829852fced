"""Features of a loop function: a row of numbers for each buffer that it writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from intarsia.autoschedule.features.arithmetic_intensity import intensity_curve
from intarsia.autoschedule.features.buffer_features import buffer_features
from intarsia.autoschedule.features.feature_names import MAX_BUFFERS, feature_names
from intarsia.autoschedule.features.gpu_features import gpu_features
from intarsia.autoschedule.features.loop_annotations import annotation_features
from intarsia.autoschedule.features.machine import Machine
from intarsia.autoschedule.features.machine_features import machine_features
from intarsia.autoschedule.features.operation_counts import COUNTS
from intarsia.autoschedule.features.reuse import LoopTouches
from intarsia.autoschedule.features.store_analysis import StoreAnalysis, analyse_stores
from intarsia.autoschedule.task.hardware_params import HardwareParams
from intarsia.ir import PrimFunc


def per_store_features(
    function: PrimFunc,
    hardware: HardwareParams,
    max_buffers: int = MAX_BUFFERS,
    machine: Machine | None = None,
) -> NDArray[np.float32]:
    """Return a row per buffer that a loop function writes, a column per name of `feature_names()` (Ansor).

    The function is as `lower` returns it, before any pass: loops are still those of the schedule, and
    vectorised and unrolled ones are only marked. `collect_stores` describes how guards, register
    scalars and selects are counted.

    Numbers are sign(x) * log2(abs(x) + 1); `is_gpu` and one-hot columns are not scaled. Where a
    buffer is written by several statements, as an accumulator is, operations are summed and the rest is of
    the last one.

    Defects of upstream's extractor that are mended here (its golden values hold): lines are divided by the
    extents of the
    loops that are skipped, not by the innermost one's; distinct lines are of the buffer itself, not of the
    last one, and runs go through all dimensions that are covered; distinct bytes are of all accesses, not
    of the first; positions of loops are given; multiply-adds count as `mad` too.

    Args:
        function: A loop function.
        hardware: Hardware parameters, for the bytes of a cache line.
        max_buffers: Maximum number of buffers of a store that have features.
        machine: Machine for the columns of `MACHINE_FEATURES`; None for Ansor's columns only.

    Returns:
        Features of shape (rows, columns), rows in the order of first stores; no row if nothing is stored.
    """
    stores = analyse_stores(function)
    return store_features(stores, unroll_steps(function), hardware, max_buffers, machine)


def unroll_steps(function: PrimFunc) -> float:
    """Return the value of the pragma `auto_unroll_max_step`; 0 without one."""
    steps = function.attrs.get("auto_unroll_max_step", 0)
    return float(steps) if isinstance(steps, int) else 0.0


def store_features(
    stores: Iterable[StoreAnalysis],
    unroll: float,
    hardware: HardwareParams,
    max_buffers: int = MAX_BUFFERS,
    machine: Machine | None = None,
) -> NDArray[np.float32]:
    """Return the features of an analysed function, see `per_store_features`.

    Args:
        stores: Analysed stores of the function.
        unroll: Value of its pragma `auto_unroll_max_step`.
        hardware: Hardware parameters, for the bytes of a cache line.
        max_buffers: Maximum number of buffers of a store that have features.
        machine: Machine for the columns of `MACHINE_FEATURES`; None for Ansor's columns only.
    """
    touches, counts, rows = LoopTouches(), dict[str, list[float]](), dict[str, list[float]]()
    for store in stores:
        touches.add(store)
        name = store.written.buffer.name
        before = counts.get(name, [0.0] * len(COUNTS))
        pairs = zip(before, store.record.counts, strict=True)
        counts[name] = [total + count * store.iterations for total, count in pairs]
        buffers = buffer_features(store, touches, hardware.cache_line_bytes, max_buffers)
        rows[name] = [
            *(*annotation_features(store), *gpu_features(store), *buffers),
            *(*intensity_curve(store), *_allocation(store)),
            *(store.iterations, len(store.loops), unroll),
            *(machine_features(store, machine) if machine is not None else ()),
        ]
    names = feature_names(max_buffers, machine is not None)
    values = np.array([counts[name] + row for name, row in rows.items()], np.float64)
    return _scaled(values.reshape(len(rows), len(names)), names)


def _allocation(store: StoreAnalysis) -> Sequence[float]:
    """Return the features of the allocation of the written buffer, see `ALLOCATION_FEATURES`."""
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
