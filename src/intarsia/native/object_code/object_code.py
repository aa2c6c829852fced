"""Object code brought into memory and linked, without LLVM.

The image has three areas, each of whole pages: code and stubs; constants and slots; data that the code
writes. It is put together in ordinary memory with its final addresses, copied once, and then protected: code
can be executed and not written, data written and not executed.

A slot is a word that holds the address of a symbol; a stub is code that jumps to where a slot says. Calls of
functions outside go through stubs, because libraries stand farther away than a call can say.
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
    """Machine code in memory; it stays while this object is referred to."""

    @property
    def addresses(self) -> Mapping[str, int]:
        """Of the global symbols that the object code defines, by name."""

    def unload(self) -> None:
        """Give the memory back; nothing of the code may run any more, or be called again."""


@dataclass(frozen=True, eq=False)
class LinkedCode:
    """Code that this module has linked."""

    addresses: Mapping[str, int]
    memory: ExecutableMemory

    def unload(self) -> None:
        """Give the memory back; nothing of the code may run any more, or be called again."""
        self.memory.release()


@dataclass(frozen=True)
class Layout:
    """Where everything of an image stands, as offsets from its start.

    Attributes:
        places: Of the sections, by their number in the file.
        stubs: Of the stub of each symbol that has one, by the symbol's number.
        slots: Of the slot of each symbol that has one, by the symbol's number.
        constants: Where code ends and constants begin; a multiple of PAGE.
        data: Where constants end and written data begins; a multiple of PAGE.
        size: Bytes of all.
    """

    places: Mapping[int, int]
    stubs: Mapping[int, int]
    slots: Mapping[int, int]
    constants: int
    data: int
    size: int


@dataclass(frozen=True)
class Outside:
    """The functions outside of object code that it may call.

    Attributes:
        given: Addresses that the caller provides, by name.
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
        data: A relocatable ELF file for this machine's architecture; whether the machine has the instructions
            that it uses is for `Isa.fits` to say.
        symbols: Addresses of functions that it may call, besides those of the C library.
        allowed: Names of the functions of the C library that it may call.

    Raises:
        ArtifactError: It is damaged, for another architecture, or needs what is not there or not allowed.
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
    """Decide where sections, stubs and slots stand."""
    stubbed = _symbols_of(file, lambda relocation: rules.is_call(relocation.kind))
    stubbed = tuple(symbol for symbol in stubbed if not file.symbols[symbol].is_defined)
    slotted = _symbols_of(file, lambda relocation: rules.needs_slot(relocation.kind))
    places: dict[int, int] = {}
    end = _place(places, [section for section in file.sections if section.is_code], 0)
    first_stub = round_up(end, 16)
    constants = round_up(first_stub + len(stubbed) * rules.stub_bytes)
    read_only = [section for section in file.sections if not section.is_code and not section.is_writable]
    first_slot = round_up(_place(places, read_only, constants), _SLOT_BYTES)
    slots = sorted({*stubbed, *slotted})
    data = round_up(first_slot + len(slots) * _SLOT_BYTES)
    size = _place(places, [section for section in file.sections if section.is_writable], data)
    return Layout(
        places,
        {symbol: first_stub + i * rules.stub_bytes for i, symbol in enumerate(stubbed)},
        {symbol: first_slot + i * _SLOT_BYTES for i, symbol in enumerate(slots)},
        constants,
        data,
        max(size, data, PAGE),
    )


def build_image(
    file: ObjectFile, layout: Layout, rules: RelocationRules, base: int, outside: Outside
) -> bytearray:
    """The image as it must stand in memory from the address `base` on.

    Raises:
        ArtifactError: A symbol is not known, or too far away.
    """
    image = bytearray(layout.size)
    for section in file.sections:
        place = layout.places[section.index]
        image[place : place + len(section.content)] = section.content
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
        memory.protect(0, layout.constants, is_code=True)
        memory.protect(layout.constants, layout.data, is_code=False)
    except BaseException:
        memory.release()
        raise
    addresses = {
        symbol.name: memory.address + layout.places[symbol.section] + symbol.value
        for symbol in file.symbols
        if symbol.is_global and symbol.section is not None and symbol.section in layout.places
    }
    return LinkedCode(addresses, memory)


def _symbols_of(file: ObjectFile, wanted: _Wanted) -> tuple[int, ...]:
    return tuple(sorted({relocation.symbol for relocation in file.relocations if wanted(relocation)}))


class _Wanted(Protocol):
    def __call__(self, relocation: Relocation, /) -> bool: ...


def _place(places: dict[int, int], sections: list[Section], end: int) -> int:
    """Put the sections one after another; the end of the last."""
    for section in sections:
        places[section.index] = round_up(end, section.alignment)
        end = places[section.index] + len(section.content)
    return end


def _address(file: ObjectFile, number: int, layout: Layout, base: int, outside: Outside) -> int:
    if not file.symbols:  # a relocation without a symbol, in a file without any
        return 0
    symbol = file.symbols[number]
    if symbol.section is not None:
        if symbol.section not in layout.places:
            raise ArtifactError(
                f"this object code cannot be loaded: {symbol.name!r} is in a section that is not loaded"
            )
        return base + layout.places[symbol.section] + symbol.value
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
    at = layout.places[relocation.section] + relocation.offset
    symbol = relocation.symbol
    target = resolved[symbol]
    if rules.is_call(relocation.kind) and symbol in layout.stubs:
        target = base + layout.stubs[symbol]
    slot = base + layout.slots[symbol] if rules.needs_slot(relocation.kind) else 0
    return Fixup(relocation.kind, at, base + at, target, relocation.addend, slot)
