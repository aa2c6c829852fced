"""The mock device `mock:i`: its memory is inaccessible from outside, so that a missing copy is an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast
from weakref import WeakKeyDictionary

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


class MockBuffer:
    """An opaque handle of a value in the memory of a mock device; it has no method of an array."""

    __slots__ = ("__weakref__", "_device")

    def __init__(self, device: DeviceName) -> None:
        self._device = device

    def __repr__(self) -> str:
        return f"a buffer of {self._device}"


class MockDevice:
    """A device that computes on the host, with kernels of any toolchain, but returns only handles.

    Every value is copied on the way in and on the way out.
    """

    kind: ClassVar[str] = "mock"
    default_toolchain: ClassVar[str | None] = None

    def __init__(self, name: DeviceName, cores: CoreGroup) -> None:  # noqa: ARG002 - has no cores of its own
        self.name = name
        self.worker = Worker(str(name))
        self._values: WeakKeyDictionary[MockBuffer, Value] = WeakKeyDictionary()

    def allocate(self, size: int) -> MockBuffer:
        """As `Device.allocate`."""
        return self._keep(allocate_aligned(size))

    def view(
        self, block: MockBuffer, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> MockBuffer:
        """As `Device.view`."""
        return self._keep(
            np.ndarray(shape, dtype, buffer=cast("Array", self._value_of(block)), offset=offset)
        )

    def adopt(self, array: Array) -> None:  # noqa: ARG002 - none is reached
        """Return None: the device has no access to host memory."""
        return

    def put(self, value: Value) -> MockBuffer:
        """As `Device.put`."""
        return self._keep(_copied(value))

    def get(self, buffer: MockBuffer, into: Array | None = None) -> Value:
        """As `Device.get`."""
        value = self._value_of(buffer)
        return _copied(value) if into is None else copied_into(into, value)

    def receive(self, source: Device, buffer: Buffer, into: MockBuffer | None) -> MockBuffer:
        """As `Device.receive`."""
        if into is None:
            return self._keep(_copied(source.get(buffer)))
        source.get(buffer, cast("Array", self._value_of(into)))
        return into

    def run(
        self, kernel: NamedKernel, inputs: Sequence[MockBuffer], outputs: Sequence[MockBuffer | None]
    ) -> list[MockBuffer]:
        """As `Device.run`."""
        try:
            opened = [self._value_of(buffer) for buffer in inputs]
            targets = [None if buffer is None else self._value_of(buffer) for buffer in outputs]
        except ExecutionError as error:
            error.add_note(f"in kernel {kernel.name}")
            raise
        arrays = cast("list[Array | None]", targets)
        results = own_results(kernel.run(opened, arrays), opened, arrays)
        return [
            self._keep(result) if buffer is None else buffer
            for result, buffer in zip(results, outputs, strict=True)
        ]

    def synchronize(self) -> None:
        """Do nothing: `run` returns when the kernel has ended."""

    def close(self) -> None:
        """End the thread and forget all values."""
        self.worker.close()
        self._values.clear()

    def _keep(self, value: Value) -> MockBuffer:
        buffer = MockBuffer(self.name)
        self._values[buffer] = value
        return buffer

    def _value_of(self, buffer: object) -> Value:
        if not isinstance(buffer, MockBuffer) or buffer not in self._values:
            found = buffer if isinstance(buffer, MockBuffer) else "a value of the host"
            raise ExecutionError(
                f"{self.name} is given {found}, which is not in its memory",
                help="a device_copy is missing; PlanDevices puts them where they are needed",
            )
        return self._values[buffer]


def _copied(value: Value) -> Value:
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return None if value is None else value.copy()
