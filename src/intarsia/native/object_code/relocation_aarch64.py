"""Relocations of AArch64 (ELF for the Arm 64-bit Architecture, section 5.7)."""

from __future__ import annotations

import struct
from typing import Final

from intarsia.native.object_code.relocation import Fixup, put, too_far, unknown_kind
from intarsia.support.errors import ArtifactError

_NONE, _ABS64, _ABS32, _PREL64, _PREL32 = (0, 257, 258, 260, 261)
_PAGE, _PAGE_NC, _ADD_LO12 = (275, 276, 277)
_JUMP26, _CALL26 = (282, 283)
_GOT_PAGE, _GOT_LO12 = (311, 312)
_SCALED_LO12: Final = {278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # loads and stores: log2 of their bytes
_ABSOLUTE: Final = {_ABS64: 8, _ABS32: 4}
_RELATIVE: Final = {_PREL64: 8, _PREL32: 4}
_OTHERS: Final = {_NONE, _PAGE, _PAGE_NC, _ADD_LO12, _JUMP26, _CALL26, _GOT_PAGE, _GOT_LO12}
_KNOWN: Final = {*_OTHERS, *_SCALED_LO12, *_ABSOLUTE, *_RELATIVE}
_WORD: Final = 1 << 64
_ADRP_X16, _LOAD_X16, _BRANCH_X16 = (0x90000010, 0xF9400210, 0xD61F0200)


class RelocationsAArch64:
    """The kinds that LLVM emits for the small code model."""

    stub_bytes = 16

    def needs_slot(self, kind: int) -> bool:
        """Whether it refers to a word that holds the symbol's address."""
        if kind not in _KNOWN:
            raise unknown_kind("AArch64", kind)
        return kind in {_GOT_PAGE, _GOT_LO12}

    def is_call(self, kind: int) -> bool:
        """Whether it calls a function, which may stand far away."""
        return kind in {_JUMP26, _CALL26}

    def apply(self, image: bytearray, fixup: Fixup) -> None:
        """Write its value into the image."""
        kind, at, place, value = fixup.kind, fixup.at, fixup.place, fixup.target + fixup.addend
        if kind in _ABSOLUTE:
            put(image, at, value % _WORD if kind == _ABS64 else value, _ABSOLUTE[kind], signed=False)
        elif kind in _RELATIVE:
            put(image, at, value - place, _RELATIVE[kind], signed=True)
        elif kind in {_PAGE, _PAGE_NC}:
            _change(image, at, _page_bits(value, place))
        elif kind == _GOT_PAGE:
            _change(image, at, _page_bits(fixup.slot + fixup.addend, place))
        elif kind == _GOT_LO12:
            _change(image, at, _low_bits(fixup.slot + fixup.addend, 3))
        elif kind == _ADD_LO12:
            _change(image, at, _low_bits(value, 0))
        elif kind in _SCALED_LO12:
            _change(image, at, _low_bits(value, _SCALED_LO12[kind]))
        elif kind in {_JUMP26, _CALL26}:
            _change(image, at, _branch_bits(value - place))

    def stub(self, address: int, slot: int) -> bytes:
        """Code at `address` that jumps to the address that `slot` holds."""
        page, low = _page_bits(slot, address), _low_bits(slot, 3)
        return struct.pack("<IIII", _ADRP_X16 | page[1], _LOAD_X16 | low[1], _BRANCH_X16, 0)


def _change(image: bytearray, at: int, mask_and_bits: tuple[int, int]) -> None:
    """Replace the bits of an instruction that the mask names."""
    mask, bits = mask_and_bits
    instruction = int.from_bytes(image[at : at + 4], "little")
    put(image, at, instruction & ~mask | bits, 4, signed=False)


def _page_bits(value: int, place: int) -> tuple[int, int]:
    """Distance between the pages of 4096 bytes, 21 bits: two low ones at bit 29, the others at bit 5."""
    pages = (value >> 12) - (place >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise too_far()
    return 0x60FFFFE0, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def _low_bits(value: int, scale: int) -> tuple[int, int]:
    """Offset in the page of 4096 bytes, in units of 2**scale, 12 bits at bit 10."""
    if value & ((1 << scale) - 1):
        raise ArtifactError("this object code cannot be loaded: a relocation's target is not aligned")
    return 0x3FFC00, (value & 0xFFF) >> scale << 10


def _branch_bits(distance: int) -> tuple[int, int]:
    """Distance in instructions, 26 bits at bit 0."""
    if distance & 3 or not -(1 << 27) <= distance < 1 << 27:
        raise too_far()
    return 0x3FFFFFF, distance >> 2 & 0x3FFFFFF
