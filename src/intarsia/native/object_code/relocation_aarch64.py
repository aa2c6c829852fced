"""Relocations of AArch64 (ELF for the Arm 64-bit Architecture, section 5.7)."""

from __future__ import annotations

import struct
from typing import Final

from intarsia.native.object_code.relocation import Fixup, too_far, unknown_kind, write_number
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
# A stub: adrp x16, slot; ldr x16, [x16, low bits of slot]; br x16. The ABI reserves x16 for such veneers.
_ADRP_X16, _LOAD_X16, _BRANCH_X16 = (0x90000010, 0xF9400210, 0xD61F0200)


class RelocationsAArch64:
    """Relocations that LLVM emits for the small code model."""

    stub_bytes = 16

    def needs_slot(self, kind: int) -> bool:
        """Return whether a relocation refers to the slot of its symbol."""
        if kind not in _KNOWN:
            raise unknown_kind("AArch64", kind)
        return kind in {_GOT_PAGE, _GOT_LO12}

    def is_call(self, kind: int) -> bool:
        """Return whether a relocation is a call, whose function may be out of range."""
        return kind in {_JUMP26, _CALL26}

    def apply(self, image: bytearray, fixup: Fixup) -> None:
        """Write the value of a relocation into the image."""
        kind, offset, address, value = fixup.kind, fixup.offset, fixup.address, fixup.target + fixup.addend
        if kind in _ABSOLUTE:
            write_number(
                image, offset, value % _WORD if kind == _ABS64 else value, _ABSOLUTE[kind], signed=False
            )
        elif kind in _RELATIVE:
            write_number(image, offset, value - address, _RELATIVE[kind], signed=True)
        elif kind in {_PAGE, _PAGE_NC}:
            _replace_bits(image, offset, _page_bits(value, address))
        elif kind == _GOT_PAGE:
            _replace_bits(image, offset, _page_bits(fixup.slot + fixup.addend, address))
        elif kind == _GOT_LO12:
            _replace_bits(image, offset, _low_bits(fixup.slot + fixup.addend, 3))
        elif kind == _ADD_LO12:
            _replace_bits(image, offset, _low_bits(value, 0))
        elif kind in _SCALED_LO12:
            _replace_bits(image, offset, _low_bits(value, _SCALED_LO12[kind]))
        elif kind in {_JUMP26, _CALL26}:
            _replace_bits(image, offset, _branch_bits(value - address))

    def stub(self, address: int, slot: int) -> bytes:
        """Return the code of a stub at `address` that jumps to the address in `slot`."""
        page, low = _page_bits(slot, address), _low_bits(slot, 3)
        return struct.pack("<IIII", _ADRP_X16 | page[1], _LOAD_X16 | low[1], _BRANCH_X16, 0)


def _replace_bits(image: bytearray, offset: int, mask_and_bits: tuple[int, int]) -> None:
    """Replace the bits of an instruction that the mask selects."""
    mask, bits = mask_and_bits
    instruction = int.from_bytes(image[offset : offset + 4], "little")
    write_number(image, offset, instruction & ~mask | bits, 4, signed=False)


def _page_bits(value: int, address: int) -> tuple[int, int]:
    """Mask and bits of ADRP: page distance, 21 bits, the two low ones at bit 29, the others at bit 5."""
    # ADRP adds whole pages of 4096 bytes to the page of the instruction, so pages are subtracted, not
    # addresses.
    pages = (value >> 12) - (address >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise too_far()
    return 0x60FFFFE0, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5


def _low_bits(value: int, scale: int) -> tuple[int, int]:
    """Mask and bits of a load or add: offset in the page in units of 2**scale bytes, 12 bits at bit 10."""
    if value & ((1 << scale) - 1):
        raise ArtifactError("this object code cannot be loaded: a relocation's target is not aligned")
    return 0x3FFC00, (value & 0xFFF) >> scale << 10


def _branch_bits(distance: int) -> tuple[int, int]:
    """Mask and bits of B and BL: distance in instructions, 26 bits at bit 0."""
    if distance & 3 or not -(1 << 27) <= distance < 1 << 27:
        raise too_far()
    return 0x3FFFFFF, distance >> 2 & 0x3FFFFFF
