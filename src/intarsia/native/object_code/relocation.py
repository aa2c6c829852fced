"""Parts that the relocations of all machines share: their inputs and their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from intarsia.support.errors import ArtifactError


@dataclass(eq=False)
class UnknownRelocationError(ArtifactError):
    """Object code has a relocation that only LLVM's loader supports."""


@dataclass(frozen=True, slots=True)
class Fixup:
    """A relocation with all addresses.

    Attributes:
        kind: Relocation type, a number of the ELF supplement of the machine.
        offset: Offset of the relocated field in the image, in bytes.
        address: Address of the relocated field (P in the ABI documents).
        target: Address of the symbol, or of the stub that jumps there (S).
        addend: Constant that the relocation adds (A).
        slot: Address of the slot of the symbol, 0 if the relocation needs none.
    """

    kind: int
    offset: int
    address: int
    target: int
    addend: int
    slot: int


class RelocationRules(Protocol):
    """The relocations of one machine.

    `needs_slot` raises UnknownRelocationError for an unknown kind.
    """

    stub_bytes: int

    def needs_slot(self, kind: int) -> bool:
        """Return whether a relocation refers to the slot of its symbol."""

    def is_call(self, kind: int) -> bool:
        """Return whether a relocation is a call, whose function may be out of range."""

    def apply(self, image: bytearray, fixup: Fixup) -> None:
        """Write the value of a relocation into the image; raise ArtifactError if it does not fit."""

    def stub(self, address: int, slot: int) -> bytes:
        """Return the code of a stub at `address` that jumps to the address in `slot`."""


def write_number(image: bytearray, offset: int, value: int, size: int, *, signed: bool) -> None:
    """Write a little-endian number into the image.

    Raises:
        ArtifactError: The number does not fit in `size` bytes, or is outside the image.
    """
    if offset + size > len(image):
        raise ArtifactError("this object code cannot be loaded: a relocation is outside its section")
    try:
        image[offset : offset + size] = value.to_bytes(size, "little", signed=signed)
    except OverflowError:
        raise too_far() from None


def too_far() -> ArtifactError:
    """Error for an address beyond the range of its relocation."""
    return ArtifactError("this object code cannot be loaded: a symbol is too far away from its use")


def unknown_kind(machine: str, kind: int) -> UnknownRelocationError:
    """Error for a relocation that this loader does not support."""
    return UnknownRelocationError(
        f"this object code cannot be loaded: unknown relocation {kind} of {machine}"
    )
