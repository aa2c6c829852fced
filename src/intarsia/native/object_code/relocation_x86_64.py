"""Relocations of x86-64 (System V ABI, AMD64 supplement, section 4.4)."""

from __future__ import annotations

import struct
from typing import Final

from intarsia.native.object_code.relocation import Fixup, unknown_kind, write_number

_NONE, _64, _PC32, _PLT32, _GOTPCREL, _32, _32S, _PC64, _GOTPCRELX, _REX_GOTPCRELX = (
    0, 1, 2, 4, 9, 10, 11, 24, 41, 42,
)  # fmt: skip
_ABSOLUTE: Final = {_64: (8, False), _32: (4, False), _32S: (4, True)}
_RELATIVE: Final = {_PC32: 4, _PLT32: 4, _PC64: 8}
_THROUGH_SLOT: Final = {_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX}
_JUMP: Final = b"\xff\x25"  # jmp *offset(%rip)
_WORD: Final = 1 << 64


class RelocationsX8664:
    """Relocations that LLVM emits for the small and large code models."""

    stub_bytes = 8

    def needs_slot(self, kind: int) -> bool:
        """Return whether a relocation refers to the slot of its symbol."""
        if kind not in {_NONE, *_ABSOLUTE, *_RELATIVE, *_THROUGH_SLOT}:
            raise unknown_kind("x86-64", kind)
        return kind in _THROUGH_SLOT

    def is_call(self, kind: int) -> bool:
        """Return whether a relocation is a call, whose function may be out of range."""
        return kind == _PLT32

    def apply(self, image: bytearray, fixup: Fixup) -> None:
        """Write the value of a relocation into the image."""
        kind, value = fixup.kind, fixup.target + fixup.addend
        if kind in _ABSOLUTE:
            size, signed = _ABSOLUTE[kind]
            write_number(image, fixup.offset, value % _WORD if size == 8 else value, size, signed=signed)
        elif kind in _RELATIVE:
            write_number(image, fixup.offset, value - fixup.address, _RELATIVE[kind], signed=True)
        elif kind in _THROUGH_SLOT:
            write_number(image, fixup.offset, fixup.slot + fixup.addend - fixup.address, 4, signed=True)

    def stub(self, address: int, slot: int) -> bytes:
        """Return the code of a stub at `address` that jumps to the address in `slot`."""
        # A displacement counts from the end of the instruction, which is 6 bytes long; int3 (0xcc) fills the
        # rest.
        distance = slot - (address + 6)
        return (_JUMP + struct.pack("<i", distance)).ljust(self.stub_bytes, b"\xcc")
