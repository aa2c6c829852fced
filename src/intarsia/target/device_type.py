"""The kinds of device that a program can run on."""

from __future__ import annotations

from difflib import get_close_matches
from enum import Enum

from intarsia.support.errors import UsageError


class DeviceType(Enum):
    """A kind of device; the numbers are those of DLPack's `DLDeviceType`."""

    CPU = 1
    CUDA = 2

    @property
    def kind(self) -> str:
        """The name used in targets and program text: "cpu", "cuda"."""
        return self.name.lower()

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
