"""Virtual devices: constraints on the device, target and memory of a value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeVar

from intarsia.support.errors import ProgramTextError, UsageError
from intarsia.target.device_type import DeviceType
from intarsia.target.target import Target

# The whole text form, one line without line breaks; `VirtualDevice(?)` leaves everything open.
VIRTUAL_DEVICE_REGEX: Final = (
    r"VirtualDevice\((?P<kind>\?|[a-z]+)(?::(?P<id>[0-9]{1,9}))?"
    r'(?:, target="(?P<target>[^"]+)")?(?:, scope="(?P<scope>[^"]+)")?\)'
)
_EXAMPLE: Final = 'VirtualDevice(cpu:0, target="cpu -toolchain=openvino", scope="global")'
_TEXT: Final = re.compile(VIRTUAL_DEVICE_REGEX)
_SCOPE: Final = re.compile(r"[A-Za-z0-9_.\-]*")

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class VirtualDevice:
    """A device type, which device of it, the target that compiles for it, and the memory; compared by value.

    Every field may be unconstrained. A target implies its device type, so that type is filled in.

    Attributes:
        device_type: The kind of device, or None.
        virtual_device_id: Number of the device among those of its type, 0 or more, or None.
        target: Target that compiles for the device, or None.
        memory_scope: Name of the memory ("global"), or "" if unconstrained.

    Raises:
        UsageError: The target is for another device type, the number is out of range, the scope malformed.
    """

    device_type: DeviceType | None = None
    virtual_device_id: int | None = None
    target: Target | None = None
    memory_scope: str = ""

    def __post_init__(self) -> None:
        if self.target is not None and self.device_type is None:
            object.__setattr__(self, "device_type", self.target.device_type)
        if self.target is not None and self.device_type is not self.target.device_type:
            found = self.device_type.kind if self.device_type else "none"
            raise UsageError(
                f'device type {found} does not fit target "{self.target}"; expected {self.target.kind}'
            )
        if self.virtual_device_id is not None and not 0 <= self.virtual_device_id < 10**9:
            raise UsageError(
                f"virtual device id is {self.virtual_device_id}; expected 0 to 999999999, or None"
            )
        if not _SCOPE.fullmatch(self.memory_scope):
            raise UsageError(
                f"memory scope {self.memory_scope!r} is malformed; expected letters, digits, '_', '-' and '.'"
            )

    @classmethod
    def for_target(cls, target: Target) -> VirtualDevice:
        """Device 0 of the target's device type."""
        return cls(target.device_type, 0, target)

    @property
    def is_fully_unconstrained(self) -> bool:
        """Whether no field is known."""
        return self == UNCONSTRAINED

    @staticmethod
    def join(left: VirtualDevice, right: VirtualDevice) -> VirtualDevice | None:
        """Return the constraints of both, field by field; None where they contradict each other."""
        if (
            _contradict(left.device_type, right.device_type)
            or _contradict(left.virtual_device_id, right.virtual_device_id)
            or _contradict(left.target, right.target)
            or _contradict(left.memory_scope or None, right.memory_scope or None)
        ):
            return None
        return VirtualDevice.default(left, right)

    @staticmethod
    def default(left: VirtualDevice, right: VirtualDevice) -> VirtualDevice:
        """`left`, its open fields filled in from `right`.

        The number and the target of `right` count only where its device type agrees with that of `left`.
        """
        virtual_device_id, target = left.virtual_device_id, left.target
        if not _contradict(left.device_type, right.device_type):
            virtual_device_id = _first(virtual_device_id, right.virtual_device_id)
            target = _first(target, right.target)
        return VirtualDevice(
            _first(left.device_type, right.device_type),
            virtual_device_id,
            target,
            left.memory_scope or right.memory_scope,
        )

    @classmethod
    def parse(cls, text: str) -> VirtualDevice:
        """The virtual device that `text` describes; `parse(str(device)) == device`.

        Raises:
            ProgramTextError: It is not the text of a virtual device.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ProgramTextError(
                f"{text!r} is not a virtual device; expected a text such as {_EXAMPLE}",
                help="a device of any type is written '?'; number, target and scope may be left out",
            )
        try:
            return cls(
                None if match["kind"] == "?" else DeviceType.of_kind(match["kind"]),
                None if match["id"] is None else int(match["id"]),
                None if match["target"] is None else Target(match["target"]),
                match["scope"] or "",
            )
        except UsageError as error:
            raise ProgramTextError(
                f"{text!r} is not a virtual device: {error.problem}", help=error.help
            ) from error

    def __str__(self) -> str:
        """The text form, such as `VirtualDevice(cpu:0, target="cpu -threads=2", scope="global")`."""
        kind = "?" if self.device_type is None else self.device_type.kind
        number = "" if self.virtual_device_id is None else f":{self.virtual_device_id}"
        target = "" if self.target is None else f', target="{self.target}"'
        scope = f', scope="{self.memory_scope}"' if self.memory_scope else ""
        return f"VirtualDevice({kind}{number}{target}{scope})"


UNCONSTRAINED: Final = VirtualDevice()


def _first(left: F | None, right: F | None) -> F | None:
    return right if left is None else left


def _contradict(left: F | None, right: F | None) -> bool:
    return left is not None and right is not None and left != right
