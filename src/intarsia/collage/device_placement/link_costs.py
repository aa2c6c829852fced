"""What copies between devices cost, measured on this machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

import numpy as np

from intarsia.collage.device_placement.device_problem import Link
from intarsia.measure.timing.host_lock import exclusive_host
from intarsia.runtime.devices.device import Device
from intarsia.runtime.devices.open_devices import open_devices
from intarsia.target import VirtualDevice

SIZES: Final = (4096, 4 * 1024 * 1024)
"""Sizes of the measured copies: the small one gives the fixed cost, the large one the cost per byte."""

_REPEATS: Final = 15


def measured_links(
    devices: Sequence[VirtualDevice],
    clock: Callable[[], float] = time.perf_counter,
    on_wait: Callable[[str], None] | None = None,
) -> tuple[tuple[Link, ...], ...]:
    """What a copy from each device (row) to each other one (column) costs; nothing on the same device.

    Args:
        devices: Devices, with type and number.
        clock: Clock, in seconds.
        on_wait: Called once with a sentence on the process that holds this host, if there is a wait.

    Raises:
        UsageError: The runtime has no such devices.
        MissingToolchainError: What a device needs is not usable here.
    """
    names = [
        f"{device.device_type.kind}:{device.virtual_device_id}" for device in devices if device.device_type
    ]
    distinct = list(dict.fromkeys(names))
    with ExitStack() as closing, exclusive_host(on_wait=on_wait):
        opened = open_devices(distinct, [None] * len(distinct))
        for device in opened:
            closing.callback(device.close)
        costs = {
            (source.name, target.name): Link() if source is target else _link(source, target, clock)
            for source in opened
            for target in opened
        }
        by_name = dict(zip(distinct, (device.name for device in opened), strict=True))
    return tuple(tuple(costs[by_name[one], by_name[other]] for other in names) for one in names)


def _link(source: Device, target: Device, clock: Callable[[], float]) -> Link:
    small, large = (_seconds(source, target, size, clock) for size in SIZES)
    per_byte = max(0.0, large - small) / (SIZES[1] - SIZES[0])
    return Link(max(0.0, small - per_byte * SIZES[0]), per_byte)


def _seconds(source: Device, target: Device, nbytes: int, clock: Callable[[], float]) -> float:
    """Seconds of a copy into a buffer that is there, with what it takes to wake the device; the median."""
    array = np.zeros(nbytes // 4, np.float32)
    buffer = source.worker.call(lambda: source.put(array))
    into = target.worker.call(lambda: target.view(target.allocate(nbytes), 0, array.shape, array.dtype))

    def copy() -> None:
        target.receive(source, buffer, into)
        target.synchronize()

    seconds = []
    for _ in range(_REPEATS):
        begin = clock()
        target.worker.call(copy)
        seconds.append(clock() - begin)
    return statistics.median(seconds)
