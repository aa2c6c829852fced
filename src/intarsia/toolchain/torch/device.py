"""`cuda:i`: a CUDA device through torch, with one stream; copies go by pinned memory of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from intarsia.runtime.devices.core_groups import CoreGroup
from intarsia.runtime.devices.device import Buffer, Device
from intarsia.runtime.devices.device_name import DeviceName
from intarsia.runtime.devices.fitting import copied_into
from intarsia.runtime.devices.worker import Worker
from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.support.errors import ExecutionError, IntarsiaError, MissingToolchainError
from intarsia.toolchain.torch.kernel import TorchKernel
from intarsia.toolchain.torch.rule import Tensor
from intarsia.toolchain.torch.types import as_tensor, torch_dtype_of


class TorchDevice:
    """Buffers are tensors on one device of torch; kernels are those of the toolchain torch.

    Args:
        name: Its name.
        place: PyTorch's device of its tensors.
    """

    kind: ClassVar[str] = "cuda"
    default_toolchain: ClassVar[str | None] = "torch"

    def __init__(self, name: DeviceName, torch_device: Any) -> None:
        self.name = name
        self.worker = Worker(str(name))
        self._place = torch_device

    def allocate(self, size: int) -> Tensor:
        """As `Device.allocate`."""
        try:
            return torch.empty(size, dtype=torch.uint8, device=self._place)
        except torch.OutOfMemoryError as error:
            raise MemoryError(str(error)) from error

    def view(self, block: Tensor, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        """As `Device.view`."""
        count = int(np.prod(shape)) * dtype.itemsize
        return block[offset : offset + count].view(torch_dtype_of(dtype)).reshape(shape)

    def adopt(self, array: Array) -> None:  # noqa: ARG002 - none is reached
        """None."""
        return

    def put(self, value: Value) -> Tensor:
        """As `Device.put`."""
        if not isinstance(value, np.ndarray):
            raise ExecutionError(f"{self.name} is given {type(value).__name__}, expected an array of numbers")
        return self._moved(as_tensor(value))

    def get(self, buffer: Tensor, into: Array | None = None) -> Array:
        """As `Device.get`."""
        self._refuse_strangers([buffer])
        found = self._on_host(buffer).numpy()
        return found.copy() if into is None else copied_into(into, found)

    def receive(self, source: Device, buffer: Buffer, into: Tensor | None) -> Tensor:
        """As `Device.receive`; between devices of torch without a way over the host."""
        tensor = buffer if isinstance(source, TorchDevice) else self.put(source.get(buffer))
        if into is None:
            return tensor.to(self._place, copy=True)
        if (tensor.shape, tensor.dtype) != (into.shape, into.dtype):
            found, expected = (f"{item.dtype}{list(item.shape)}" for item in (tensor, into))
            raise ExecutionError(f"a copy between devices is {found}, expected {expected}")
        return into.copy_(tensor, non_blocking=True)

    def run(
        self, kernel: NamedKernel, inputs: Sequence[Tensor], outputs: Sequence[Tensor | None]
    ) -> list[Tensor]:
        """As `Device.run`."""
        try:
            self._refuse_strangers(inputs)
            if not isinstance(kernel.kernel, TorchKernel):
                toolchain = kernel.kernel.source.toolchain
                raise ExecutionError(f"{self.name} is given a kernel of {toolchain}, expected one of torch")
            results = kernel.kernel.compute(inputs)
        except IntarsiaError as error:
            error.add_note(f"in kernel {kernel.name}")
            raise
        return [
            tensor.clone() if given is None else given.copy_(tensor)
            for tensor, given in zip(results, outputs, strict=True)
        ]

    def synchronize(self) -> None:
        """As `Device.synchronize`."""

    def close(self) -> None:
        """End the thread."""
        self.worker.close()

    def _moved(self, tensor: Tensor) -> Tensor:
        """A tensor of the host as one of this device."""
        return tensor.to(self._place, copy=True)

    def _on_host(self, tensor: Tensor) -> Tensor:
        """A complete tensor of this device as one of the host."""
        return tensor.to("cpu")

    def _refuse_strangers(self, values: Sequence[object]) -> None:
        for value in values:
            if not isinstance(value, torch.Tensor) or value.device != self._place:
                found = value.device if isinstance(value, torch.Tensor) else value
                raise ExecutionError(f"{self.name} is given a value of {found}, which is not in its memory")


class CudaDevice(TorchDevice):
    """Works on a stream of its own, which is the current one in its thread.

    Raises:
        MissingToolchainError: torch finds no such device here.
    """

    def __init__(self, name: DeviceName, cores: CoreGroup) -> None:  # noqa: ARG002 - has no cores
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if name.number >= count:
            raise MissingToolchainError(
                f"{name} is not usable here: torch finds {count} CUDA devices",
                help="place the program on other devices, or install a driver and a torch with CUDA",
            )
        super().__init__(name, torch.device("cuda", name.number))
        self._stream = torch.cuda.Stream(self._place)
        self._done = torch.cuda.Event(blocking=True)
        self.worker.call(self._begin)

    def synchronize(self) -> None:
        """Wait for an event behind all that is in the stream."""
        self._done.record(self._stream)
        self._done.synchronize()

    def _begin(self) -> None:
        torch.cuda.set_device(self._place)
        torch.cuda.set_stream(self._stream)

    def _moved(self, tensor: Tensor) -> Tensor:
        return tensor.pin_memory().to(self._place, non_blocking=True)

    def _on_host(self, tensor: Tensor) -> Tensor:
        """Called in any thread: the copy goes into this device's stream, and only that is waited for."""
        pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        with torch.cuda.stream(self._stream):
            pinned.copy_(tensor, non_blocking=True)
            done = torch.cuda.Event()
            done.record(self._stream)
        done.synchronize()
        return pinned
