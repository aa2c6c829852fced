"""What a device is at run time: memory that only it opens, and one thread that works with it."""

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
"""A value in the memory of a device; only the device itself knows what it is."""


class Device(Protocol):
    """One device of a program; constructed with its name and, on a CPU, its cores.

    What works on memory is called in the thread of `worker`, but for `get`, which any thread may call once
    the value is complete.
    """

    kind: ClassVar[str]
    """As in targets."""
    default_toolchain: ClassVar[str | None]
    """Who compiles for it where nobody is named; None for the reference toolchain."""
    name: DeviceName
    worker: Worker

    def __init__(self, name: DeviceName, cores: CoreGroup) -> None: ...

    def allocate(self, size: int) -> Buffer:
        """A block of `size` bytes.

        Raises:
            MemoryError: There is not so much.
        """

    def view(self, block: Buffer, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Buffer:
        """A buffer in a block that `allocate` gave; `offset` in bytes, a multiple of the alignment."""

    def adopt(self, array: Array) -> Buffer | None:
        """The caller's own array as a buffer, or None where the device cannot reach its memory."""

    def put(self, value: Value) -> Buffer:
        """A value of the host on this device.

        Raises:
            ExecutionError: The device has no such values (strings, sequences).
        """

    def get(self, buffer: Buffer, into: Array | None = None) -> Value:
        """A value on the host, copied into an array if one is given; else it may be the device's own memory.

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
        """Wait until all that was begun is done."""

    def close(self) -> None:
        """Let go of memory and thread."""


DEVICES: Registry[type[Device]] = Registry("device kind", group="intarsia.devices")
"""Device classes by kind."""


def device_class(kind: str) -> type[Device]:
    """The class of the devices of a kind.

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
