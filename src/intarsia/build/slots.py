"""The slots of a block while it is being lowered: type and device of each."""

from __future__ import annotations

from intarsia.build.slot_value import SlotValue, slot_info, value_like
from intarsia.ir import Call, Constant, Op, Type
from intarsia.op.node import OUTPUTS
from intarsia.runtime.plan import TensorInfo


class SlotTable:
    """Hands out slots.

    Attributes:
        types: Type of each slot, as far as it is known before the run.
        devices: The number of each slot's device.
        constants: The slots of constants; one that two devices use has one on each.
    """

    def __init__(self) -> None:
        self.types: list[TensorInfo | None] = []
        self.devices: list[int] = []
        self.constants: dict[tuple[Constant, int], int] = {}

    def new(self, type_: Type | None, device: int) -> int:
        """A new slot on a device."""
        return self._added(slot_info(type_), device)

    def like(self, type_: Type | None, device: int) -> SlotValue:
        """New slots for a value of that type, nested as it is."""
        return value_like(type_, lambda leaf: self.new(leaf, device))

    def results(self, call: Call, type_: Type | None, device: int) -> SlotValue:
        """New slots for what a call returns; where its type is unknown, as many as its attribute says."""
        count = call.attrs.get(OUTPUTS)
        if type_ is None and isinstance(count, int) and isinstance(call.op, Op):
            return tuple(self.new(None, device) for _ in range(count))
        return self.like(type_, device)

    def imported(self, other: SlotTable, slot: int, device: int | None = None) -> int:
        """A new slot for the value of one of a block; on the same device if none is given."""
        return self._added(other.types[slot], other.devices[slot] if device is None else device)

    def of_constant(self, constant: Constant, device: int) -> int:
        """The slot of a constant on a device."""
        key = constant, device
        if key not in self.constants:
            self.constants[key] = self.new(constant.checked_type, device)
        return self.constants[key]

    def _added(self, info: TensorInfo | None, device: int) -> int:
        self.types.append(info)
        self.devices.append(device)
        return len(self.types) - 1
