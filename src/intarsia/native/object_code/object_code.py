"""Linker that loads object code into memory, without LLVM.

The image has three areas, each of whole pages: code and stubs; constants and slots; data that the code
writes. It is assembled in ordinary memory with its final addresses, copied once, and then protected: code
is executable and not writable, data is writable and not executable.

A slot (GOT entry) is a word with the address of a symbol; a stub (PLT entry) is code that jumps to the
address in a slot. Calls of external functions go through stubs, because libraries lie beyond the range of a
call.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Protocol

from intarsia.native.machine.isa import host_architecture
from intarsia.native.object_code.allowed_symbols import KERNEL_SYMBOLS
from intarsia.native.object_code.elf_file import ObjectFile, Relocation, Section, read_object_file
from intarsia.native.object_code.executable_memory import PAGE, ExecutableMemory, round_up
from intarsia.native.object_code.process_symbols import address_of_symbol
from intarsia.native.object_code.relocation import Fixup, RelocationRules, UnknownRelocationError
from intarsia.native.object_code.relocation_aarch64 import RelocationsAArch64
from intarsia.native.object_code.relocation_x86_64 import RelocationsX8664
from intarsia.support.errors import ArtifactError

_RULES: Final[Mapping[str, RelocationRules]] = {
    "x86_64": RelocationsX8664(),
    "aarch64": RelocationsAArch64(),
}
_SLOT_BYTES: Final = 8


class LoadedCode(Protocol):
    """Machine code in memory; it lives as long as this object."""

    @property
    def addresses(self) -> Mapping[str, int]:
        """Addresses of the global symbols that the object code defines, by name."""

    def unload(self) -> None:
        """Free the memory; no thread may run or call the code any more."""


@dataclass(frozen=True, eq=False)
class LinkedCode:
    """Code that this module linked."""

    addresses: Mapping[str, int]
    memory: ExecutableMemory

    def unload(self) -> None:
        """Free the memory; no thread may run or call the code any more."""
        self.memory.release()


@dataclass(frozen=True)
class Layout:
    """Offsets of the parts of an image, in bytes from its start.

    Attributes:
        offsets: Offsets of the sections, by section number in the file.
        stubs: Offsets of the stubs, by symbol number.
        slots: Offsets of the slots, by symbol number.
        constants: Offset at which code ends and constants begin; a multiple of PAGE.
        data: Offset at which constants end and writable data begins; a multiple of PAGE.
        size: Size of the image in bytes.
    """

    offsets: Mapping[int, int]
    stubs: Mapping[int, int]
    slots: Mapping[int, int]
    constants: int
    data: int
    size: int


@dataclass(frozen=True)
class Outside:
    """External functions that object code may call.

    Attributes:
        given: Addresses of functions that the caller provides, by name.
        allowed: Names of the functions of the process that may be called besides.
    """

    given: Mapping[str, int]
    allowed: AbstractSet[str]

    def address(self, name: str) -> int:
        """Return the address of a function; ArtifactError if it may not be called or is not there."""
        return address_of_symbol(name, self.given, self.allowed)


def load_object_code(
    data: bytes,
    symbols: Mapping[str, int] | None = None,
    allowed: AbstractSet[str] = KERNEL_SYMBOLS,
) -> LoadedCode:
    """Load object code so that its functions can be called by their addresses.

    Args:
        data: Relocatable ELF file for this machine's architecture; `Isa.fits` checks whether the machine has
            its instructions.
        symbols: Addresses of functions that it may call besides those of the C library, by name.
        allowed: Names of the functions of the C library that it may call.

    Raises:
        ArtifactError: It is damaged, is for another architecture, or needs a function that is missing or not
            allowed.
    """
    file = read_object_file(data)
    if file.architecture != host_architecture():
        raise ArtifactError(
            f"this object code is for {file.architecture} and not for {host_architecture()}",
            help="build it again on this machine",
        )
    outside = Outside(symbols or {}, allowed)
    try:
        return _link(file, outside)
    except UnknownRelocationError as error:
        from intarsia.native.object_code.llvm_loader import load_with_llvm

        return load_with_llvm(data, outside.address, error)


def lay_out(file: ObjectFile, rules: RelocationRules) -> Layout:
    """Assign offsets to sections, stubs and slots."""
    stubbed = _symbols_of(file, lambda relocation: rules.is_call(relocation.kind))
    stubbed = tuple(symbol for symbol in stubbed if not file.symbols[symbol].is_defined)
    slotted = _symbols_of(file, lambda relocation: rules.needs_slot(relocation.kind))
    offsets: dict[int, int] = {}
    end = _assign_offsets(offsets, [section for section in file.sections if section.is_code], 0)
    first_stub = round_up(end, 16)
    constants = round_up(first_stub + len(stubbed) * rules.stub_bytes)
    read_only = [section for section in file.sections if not section.is_code and not section.is_writable]
    first_slot = round_up(_assign_offsets(offsets, read_only, constants), _SLOT_BYTES)
    # Every stub jumps through a slot, so called symbols need one too, even if no code reads it.
    slots = sorted({*stubbed, *slotted})
    data = round_up(first_slot + len(slots) * _SLOT_BYTES)
    size = _assign_offsets(offsets, [section for section in file.sections if section.is_writable], data)
    return Layout(
        offsets,
        {symbol: first_stub + i * rules.stub_bytes for i, symbol in enumerate(stubbed)},
        {symbol: first_slot + i * _SLOT_BYTES for i, symbol in enumerate(slots)},
        constants,
        data,
        max(size, data, PAGE),
    )


def build_image(
    file: ObjectFile, layout: Layout, rules: RelocationRules, base: int, outside: Outside
) -> bytearray:
    """Build the image as it must be in memory at the address `base`.

    Raises:
        ArtifactError: A symbol is unknown, or too far away.
    """
    image = bytearray(layout.size)
    for section in file.sections:
        offset = layout.offsets[section.index]
        image[offset : offset + len(section.content)] = section.content
    resolved: dict[int, int] = {}
    for symbol in sorted({*layout.slots, *(relocation.symbol for relocation in file.relocations)}):
        resolved[symbol] = _address(file, symbol, layout, base, outside)
    for symbol, at in layout.slots.items():
        image[at : at + _SLOT_BYTES] = resolved[symbol].to_bytes(_SLOT_BYTES, "little")
    for symbol, at in layout.stubs.items():
        image[at : at + rules.stub_bytes] = rules.stub(base + at, base + layout.slots[symbol])
    for relocation in file.relocations:
        rules.apply(image, _fixup(relocation, layout, rules, base, resolved))
    return image


def _link(file: ObjectFile, outside: Outside) -> LinkedCode:
    rules = _RULES[file.architecture]
    layout = lay_out(file, rules)
    memory = ExecutableMemory(layout.size)
    try:
        memory.write(build_image(file, layout, rules, memory.address, outside))
        # From here on the pages of code are read-only: nothing can change them once they can run.
        memory.protect(0, layout.constants, is_code=True)
        memory.protect(layout.constants, layout.data, is_code=False)
    except BaseException:
        memory.release()
        raise
    addresses = {
        symbol.name: memory.address + layout.offsets[symbol.section] + symbol.value
        for symbol in file.symbols
        if symbol.is_global and symbol.section is not None and symbol.section in layout.offsets
    }
    return LinkedCode(addresses, memory)


def _symbols_of(file: ObjectFile, is_wanted: _Wanted) -> tuple[int, ...]:
    return tuple(sorted({relocation.symbol for relocation in file.relocations if is_wanted(relocation)}))


class _Wanted(Protocol):
    def __call__(self, relocation: Relocation, /) -> bool: ...


def _assign_offsets(offsets: dict[int, int], sections: list[Section], end: int) -> int:
    """Place sections one after another from `end` on, and return the end of the last."""
    for section in sections:
        offsets[section.index] = round_up(end, section.alignment)
        end = offsets[section.index] + len(section.content)
    return end


def _address(file: ObjectFile, number: int, layout: Layout, base: int, outside: Outside) -> int:
    if not file.symbols:
        # A relocation may stand without a symbol, in a file without any.
        return 0
    symbol = file.symbols[number]
    if symbol.section is not None:
        if symbol.section not in layout.offsets:
            raise ArtifactError(
                f"this object code cannot be loaded: {symbol.name!r} is in a section that is not loaded"
            )
        return base + layout.offsets[symbol.section] + symbol.value
    if symbol.is_defined or not symbol.name:
        return symbol.value
    try:
        return outside.address(symbol.name)
    except ArtifactError:
        if symbol.may_be_absent:
            return 0
        raise


def _fixup(
    relocation: Relocation, layout: Layout, rules: RelocationRules, base: int, resolved: Mapping[int, int]
) -> Fixup:
    at = layout.offsets[relocation.section] + relocation.offset
    symbol = relocation.symbol
    target = resolved[symbol]
    if rules.is_call(relocation.kind) and symbol in layout.stubs:
        target = base + layout.stubs[symbol]
    slot = base + layout.slots[symbol] if rules.needs_slot(relocation.kind) else 0
    return Fixup(relocation.kind, at, base + at, target, relocation.addend, slot)
