"""The kinds of device that a program can run on."""

from __future__ import annotations

from difflib import get_close_matches
from enum import Enum

from intarsia.support.errors import UsageError


class DeviceType(Enum):
    """A kind of device; the numbers are those of DLPack's `DLDeviceType`.

    MOCK needs no accelerator and finds faults of device placement (docs/devices.md): only its own kernels can
    open its memory, so that a missing copy fails. It has the number of DLPack's extension devices.
    """

    CPU = 1
    CUDA = 2
    MOCK = 12

    @property
    def kind(self) -> str:
        """The name used in targets and program text: "cpu", "cuda", "mock"."""
        return self.name.lower()

    @classmethod
    def has_kind(cls, kind: str) -> bool:
        """Whether a device kind has that name."""
        return any(device_type.kind == kind for device_type in cls)

    @classmethod
    def of_kind(cls, kind: str) -> DeviceType:
        """The device type of a kind's name.

        Raises:
            UsageError: No device kind has that name.
        """
        kinds = {device_type.kind: device_type for device_type in cls}
        if kind in kinds:
            return kinds[kind]
        close = get_close_matches(kind, kinds, n=1)
        raise UsageError(
            f"unknown device kind {kind!r}",
            help=f"did you mean {close[0]}?" if close else f"known: {', '.join(kinds)}",
        )
