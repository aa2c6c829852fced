"""The CPU device `cpu:i`: a thread on a group of cores, with an arena in host memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from intarsia.runtime.devices.core_groups import CoreGroup
from intarsia.runtime.devices.device import Buffer, Device
from intarsia.runtime.devices.device_name import DeviceName
from intarsia.runtime.devices.fitting import copied_into, own_results
from intarsia.runtime.devices.worker import Worker
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.support.aligned_memory import allocate_aligned
from intarsia.support.errors import ExecutionError


class CpuDevice:
    """A group of cores as a device.

    Values of the host are used in place, those of other devices are copied.
    """

    kind: ClassVar[str] = "cpu"
    default_toolchain: ClassVar[str | None] = None

    def __init__(self, name: DeviceName, cores: CoreGroup) -> None:
        self.name = name
        self.cores = cores
        self.worker = Worker(str(name), cores)

    def allocate(self, size: int) -> Array:
        """As `Device.allocate`."""
        return allocate_aligned(size)

    def view(self, block: Array, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """As `Device.view`."""
        return np.ndarray(shape, dtype, buffer=block, offset=offset)

    def adopt(self, array: Array) -> Array:
        """Return the array: the device reads host memory."""
        return array

    def put(self, value: Value) -> Value:
        """Return the value itself: host memory is the device's memory."""
        return value

    def get(self, buffer: Value, into: Array | None = None) -> Value:
        """As `Device.get`."""
        self._refuse_strangers([buffer])
        return buffer if into is None else copied_into(into, buffer)

    def receive(self, source: Device, buffer: Buffer, into: Array | None) -> Value:
        """As `Device.receive`."""
        if into is not None:
            return source.get(buffer, into)
        value = source.get(buffer)
        return value.copy() if isinstance(value, np.ndarray) else value

    def run(
        self, kernel: NamedKernel, inputs: Sequence[Value], outputs: Sequence[Array | None]
    ) -> list[Value]:
        """As `Device.run`."""
        self._refuse_strangers(inputs)
        return own_results(kernel.run(inputs, outputs), inputs, outputs)

    def synchronize(self) -> None:
        """Do nothing: `run` returns when the kernel has ended."""

    def close(self) -> None:
        """End the thread."""
        self.worker.close()

    def _refuse_strangers(self, values: Sequence[object]) -> None:
        for value in values:
            if not isinstance(value, (np.ndarray, list)) and value is not None:
                raise ExecutionError(f"{self.name} is given {value}, which is not in its memory")
