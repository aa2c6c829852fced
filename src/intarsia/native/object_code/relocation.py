"""What the relocations of a machine have in common: the values that they are computed from, and refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from intarsia.support.errors import ArtifactError


@dataclass(eq=False)
class UnknownRelocationError(ArtifactError):
    """Object code with a relocation that only LLVM's own loader knows."""


@dataclass(frozen=True, slots=True)
class Fixup:
    """A relocation with its addresses known.

    Attributes:
        kind: Its number.
        at: Where its place is in the image.
        place: The address of that place.
        target: The address of its symbol, or of the stub that jumps there.
        addend: What the relocation adds.
        slot: The address of the word that holds its symbol's address, 0 if it needs none.
    """

    kind: int
    at: int
    place: int
    target: int
    addend: int
    slot: int


class RelocationRules(Protocol):
    """The relocations of one machine.

    `needs_slot` and `is_call` raise UnknownRelocationError for a kind that is not known.
    """

    stub_bytes: int

    def needs_slot(self, kind: int) -> bool:
        """Whether it refers to a word that holds the symbol's address."""

    def is_call(self, kind: int) -> bool:
        """Whether it calls a function, which may stand far away."""

    def apply(self, image: bytearray, fixup: Fixup) -> None:
        """Write its value into the image; ArtifactError if that has no place there."""

    def stub(self, address: int, slot: int) -> bytes:
        """Code at `address` that jumps to the address that `slot` holds."""


def put(image: bytearray, at: int, value: int, size: int, *, signed: bool) -> None:
    """Write a little-endian number.

    Raises:
        ArtifactError: It does not fit, or its place is not in the image.
    """
    if at + size > len(image):
        raise ArtifactError("this object code cannot be loaded: a relocation is outside its section")
    try:
        image[at : at + size] = value.to_bytes(size, "little", signed=signed)
    except OverflowError:
        raise too_far() from None


def too_far() -> ArtifactError:
    """The error for an address that is farther away than its place can say."""
    return ArtifactError("this object code cannot be loaded: a symbol is too far away from its use")


def unknown_kind(machine: str, kind: int) -> UnknownRelocationError:
    """The error for a relocation that this loader does not know."""
    return UnknownRelocationError(
        f"this object code cannot be loaded: unknown relocation {kind} of {machine}"
    )
