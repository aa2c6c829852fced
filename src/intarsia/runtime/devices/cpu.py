"""`cpu:i`: a group of cores with a thread, and memory of its own in the one memory of the host."""

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
    """Buffers are arrays; values of the host are used where they are, those of other devices are copied."""

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
        """The array."""
        return array

    def put(self, value: Value) -> Value:
        """The value itself: the host's memory is the device's."""
        return value

    def get(self, buffer: Value, into: Array | None = None) -> Value:
        """As `Device.get`."""
        self._refuse_strangers([buffer])
        return buffer if into is None else copied_into(into, buffer)

    def receive(self, source: Device, buffer: Buffer, into: Array | None) -> Value:
        """As `Device.receive`."""
        if into is not None:
            return source.get(buffer, into)
        found = source.get(buffer)
        return found.copy() if isinstance(found, np.ndarray) else found

    def run(
        self, kernel: NamedKernel, inputs: Sequence[Value], outputs: Sequence[Array | None]
    ) -> list[Value]:
        """As `Device.run`."""
        self._refuse_strangers(inputs)
        return own_results(kernel.run(inputs, outputs), inputs, outputs)

    def synchronize(self) -> None:
        """Nothing: whoever has called `run` has waited."""

    def close(self) -> None:
        """End the thread."""
        self.worker.close()

    def _refuse_strangers(self, values: Sequence[object]) -> None:
        for value in values:
            if not isinstance(value, (np.ndarray, list)) and value is not None:
                raise ExecutionError(f"{self.name} is given {value}, which is not in its memory")
