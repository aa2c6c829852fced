"""The runtime interface of a device: its private memory, and the one thread that works on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from intarsia.runtime.devices.core_groups import CoreGroup
from intarsia.runtime.devices.device_name import DeviceName
from intarsia.runtime.devices.worker import Worker
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.support.errors import MissingToolchainError
from intarsia.support.registry import Registry

Buffer: TypeAlias = Any
"""A value in the memory of a device; opaque outside of the device."""


class Device(Protocol):
    """One device of a program; constructed with its name and, on a CPU, its cores.

    Methods that work on memory are called in the thread of `worker`. Only `get` may be called from any
    thread,
    once the value is complete.
    """

    kind: ClassVar[str]
    """Kind of the device in targets, such as "cpu"."""
    default_toolchain: ClassVar[str | None]
    """Toolchain for expressions that name none; None for the reference toolchain."""
    name: DeviceName
    worker: Worker

    def __init__(self, name: DeviceName, cores: CoreGroup) -> None: ...

    def allocate(self, size: int) -> Buffer:
        """Allocate a block of `size` bytes.

        Raises:
            MemoryError: There is not enough memory.
        """

    def view(self, block: Buffer, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Buffer:
        """Return a buffer in a block of `allocate`; `offset` is in bytes, a multiple of the alignment."""

    def adopt(self, array: Array) -> Buffer | None:
        """Return the caller's array as a buffer, or None if the device cannot access its memory."""

    def put(self, value: Value) -> Buffer:
        """Copy a value of the host to this device.

        Raises:
            ExecutionError: The device has no such values (strings, sequences).
        """

    def get(self, buffer: Buffer, into: Array | None = None) -> Value:
        """Return a value on the host, copied into an array if one is given; else maybe the device's memory.

        Raises:
            ExecutionError: The buffer is not this device's.
        """

    def receive(self, source: Device, buffer: Buffer, into: Buffer | None) -> Buffer:
        """Copy a complete value of another device into a buffer of this one, a new one if None is given.

        Raises:
            ExecutionError: A buffer is not its device's, or the value has another shape or element type.
        """

    def run(
        self, kernel: NamedKernel, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None]
    ) -> list[Buffer]:
        """Run a kernel on buffers of this device; as `Kernel.run`, but no result shares memory with an input.

        Raises:
            ExecutionError: A buffer is not this device's, or the kernel failed.
        """

    def synchronize(self) -> None:
        """Wait until all work that was started is complete."""

    def close(self) -> None:
        """Release the memory and end the thread."""


DEVICES: Registry[type[Device]] = Registry(
    "device kind",
    group="intarsia.devices",
    defaults={"cuda": "intarsia.runtime.cuda.cuda_device:CudaDevice"},
)
"""Device classes by kind."""


def device_class(kind: str) -> type[Device]:
    """Return the class of the devices of a kind.

    Raises:
        UsageError: There is no such kind.
        MissingToolchainError: The package that it works with is not installed, or broken.
    """
    try:
        return DEVICES[kind]
    except ModuleNotFoundError as error:
        why = f"the package {error.name} is not installed"
    except ImportError as error:
        why = f"importing {error.name or 'its package'} failed with {type(error).__name__}: {error}"
    raise MissingToolchainError(
        f"devices of kind {kind} are not usable here: {why}",
        help="install it, or place the program on other devices",
    )
