"""Reader of relocatable ELF files (64 bits, little endian). It checks them and loads nothing.

Source: System V ABI, chapter 4, and the processor supplements for x86-64 and AArch64.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from intarsia.support.errors import ArtifactError

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
_MACHINES: Final = {62: "x86_64", 183: "aarch64"}
_RELOCATABLE: Final = 1
_SYMTAB, _RELA, _NOBITS, _REL = 2, 4, 8, 9
_RUN_BY_LOADERS: Final = {14, 15, 16}
_CHOSEN_BY_LOADERS: Final = 10
_NAMES_RUN_BY_LOADERS: Final = (".ctors", ".dtors")
_WRITE, _ALLOC, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400
_UNDEFINED, _RESERVED, _ABSOLUTE, _COMMON = 0, 0xFF00, 0xFFF1, 0xFFF2
_LARGEST_ALIGNMENT: Final = 4096
_MOST_ZEROS: Final = 1 << 26
_UNWINDING: Final = ".eh_frame"  # left out: kernels throw no exceptions


@dataclass(frozen=True)
class Section:
    """A section that is in memory when the code runs.

    Attributes:
        index: Number of the section in the file.
        name: Name of the section, for messages.
        content: Bytes of the section; zeros for a section without bytes in the file.
        alignment: Alignment in bytes, a power of two up to 4096.
        is_code: Whether it is executed.
        is_writable: Whether the code writes to it.
    """

    index: int
    name: str
    content: bytes
    alignment: int
    is_code: bool
    is_writable: bool


@dataclass(frozen=True)
class Symbol:
    """A name for an address.

    Attributes:
        name: Name of the symbol; may be empty for a section.
        section: Number of the section that contains the symbol; None for an absolute or undefined symbol.
        value: Offset in the section, or the absolute address.
        is_defined: Whether the file says where it is.
        is_global: Whether other files can link to it.
        may_be_absent: Whether it is weak: its address is 0 if no file defines it.
    """

    name: str
    section: int | None
    value: int
    is_defined: bool
    is_global: bool
    may_be_absent: bool


@dataclass(frozen=True, slots=True)
class Relocation:
    """A field in a section that the linker fills in with an address."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class ObjectFile:
    """The parts of a relocatable file that running its code needs."""

    architecture: str
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


@dataclass(frozen=True, slots=True)
class _Header:
    """An entry of the section header table."""

    name: int
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def read_object_file(data: bytes) -> ObjectFile:
    """Read and check an object file.

    Raises:
        ArtifactError: It is no relocatable ELF file for a known machine, is truncated or contradicts itself,
            or contains what cannot be loaded (thread-local data, initialisers, memory that is both writable
            and executable).
    """
    architecture, headers, names = _read_headers(data)
    if sum(header.size for header in headers if header.flags & _ALLOC) > len(data) + _MOST_ZEROS:
        raise _damaged_error("its sections are larger than the file")
    loaded = tuple(
        _section(data, index, header, _name(names, header.name))
        for index, header in enumerate(headers)
        if header.flags & _ALLOC and _name(names, header.name) != _UNWINDING
    )
    sizes = {section.index: len(section.content) for section in loaded}
    tables = [header for header in headers if header.kind == _SYMTAB]
    if len(tables) > 1:
        raise _damaged_error("it has several symbol tables")
    symbols = _symbols(data, headers, tables[0], sizes) if tables else ()
    relocations: list[Relocation] = []
    for header in headers:
        if header.info not in sizes:
            continue
        if header.kind == _REL:
            raise _damaged_error("it has relocations without addends")
        if header.kind == _RELA:
            relocations += _relocations(data, header, sizes, len(symbols))
    return ObjectFile(architecture, loaded, symbols, tuple(relocations))


def _read_headers(data: bytes) -> tuple[str, list[_Header], bytes]:
    ident, kind, machine, *rest = _HEADER.unpack(_part(data, 0, _HEADER.size, "its header"))
    if ident[:7] != b"\x7fELF\x02\x01\x01":
        raise _damaged_error("it does not start as a 64-bit little-endian ELF file does")
    if kind != _RELOCATABLE:
        raise _damaged_error(f"it is not a relocatable file (ELF type {kind})")
    if machine not in _MACHINES:
        raise _damaged_error(f"it is for an unknown machine (number {machine})")
    table_offset, entry_bytes, count, names_index = rest[3], rest[8], rest[9], rest[10]
    if entry_bytes != _SECTION.size or not 0 < names_index < count < _RESERVED:
        raise _damaged_error("its table of sections has a wrong form")
    table = _part(data, table_offset, count * _SECTION.size, "its table of sections")
    # A file of 0xFF00 sections or more keeps their count elsewhere; kernels never have as many.
    headers = [
        _Header(name, kind, flags, offset, size, link, info, alignment)
        for name, kind, flags, _, offset, size, link, info, alignment, _ in _SECTION.iter_unpack(table)
    ]
    return _MACHINES[machine], headers, _content(data, headers[names_index])


def _section(data: bytes, index: int, header: _Header, name: str) -> Section:
    alignment = max(1, header.alignment)
    if alignment & (alignment - 1) or alignment > _LARGEST_ALIGNMENT:
        raise _damaged_error(f"section {name!r} is aligned to {alignment} bytes")
    if header.kind in _RUN_BY_LOADERS or name.startswith(_NAMES_RUN_BY_LOADERS):
        raise _damaged_error(f"section {name!r} holds initialisers, which are not run")
    if header.flags & _THREAD_LOCAL:
        raise _damaged_error(f"section {name!r} holds thread-local data")
    if header.flags & _WRITE and header.flags & _EXECUTE:
        raise _damaged_error(f"section {name!r} is both written and executed")
    return Section(
        index,
        name,
        _content(data, header),
        alignment,
        bool(header.flags & _EXECUTE),
        bool(header.flags & _WRITE),
    )


def _content(data: bytes, header: _Header) -> bytes:
    if header.kind == _NOBITS and header.flags & _ALLOC:
        if header.size > _MOST_ZEROS:  # the table of names is read before the sizes of sections are checked
            raise _damaged_error("its sections are larger than the file")
        return bytes(header.size)
    return _part(data, header.offset, header.size, "a section")


def _symbols(
    data: bytes, headers: list[_Header], table: _Header, sizes: dict[int, int]
) -> tuple[Symbol, ...]:
    content = _content(data, table)
    if len(content) % _SYMBOL.size or not table.link < len(headers):
        raise _damaged_error("its symbol table has a wrong form")
    names = _content(data, headers[table.link])
    return tuple(
        _symbol(_name(names, name), info, section_index, value, sizes, len(headers))
        for name, info, _, section_index, value, _ in _SYMBOL.iter_unpack(content)
    )


def _symbol(
    name: str, info: int, section_index: int, value: int, sizes: dict[int, int], count: int
) -> Symbol:
    # The upper 4 bits of `info` are the binding (local, global, weak), the lower 4 the type of the symbol.
    binding = info >> 4
    if binding > 2 and section_index != _UNDEFINED:
        raise _damaged_error(f"symbol {name!r} has the unknown binding {binding}")
    if info & 15 == _CHOSEN_BY_LOADERS:
        raise _damaged_error(f"symbol {name!r} is chosen by code that is not run")
    if section_index == _COMMON:
        raise _damaged_error(f"symbol {name!r} is common, and has no section")
    if section_index != _ABSOLUTE and section_index >= min(count, _RESERVED):
        raise _damaged_error(f"symbol {name!r} is in section {section_index}, which there is not")
    if section_index in sizes and value > sizes[section_index]:
        raise _damaged_error(f"symbol {name!r} is outside its section")
    section = None if section_index in {_UNDEFINED, _ABSOLUTE} else section_index
    return Symbol(name, section, value, section_index != _UNDEFINED, binding > 0, binding == 2)


def _relocations(data: bytes, header: _Header, sizes: dict[int, int], symbol_count: int) -> list[Relocation]:
    content = _content(data, header)
    if len(content) % _RELOCATION.size:
        raise _damaged_error("a table of relocations has a wrong form")
    relocations = [
        # `info`: the type of the relocation in the lower 32 bits, the number of its symbol in the upper ones.
        Relocation(header.info, offset, info & 0xFFFFFFFF, info >> 32, addend)
        for offset, info, addend in _RELOCATION.iter_unpack(content)
    ]
    for relocation in relocations:
        if relocation.offset >= sizes[header.info] or relocation.symbol >= max(1, symbol_count):
            raise _damaged_error("a relocation is outside its section, or of a symbol that there is not")
    return relocations


def _name(names: bytes, offset: int) -> str:
    end = names.find(b"\0", offset)
    if offset >= len(names) or end < 0:
        raise _damaged_error("a name is outside the table of names")
    return names[offset:end].decode("utf-8", "backslashreplace")


def _part(data: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(data):
        raise _damaged_error(f"it is truncated: {what} ends at byte {offset + size} of {len(data)}")
    return data[offset : offset + size]


def _damaged_error(reason: str) -> ArtifactError:
    return ArtifactError(f"this object code cannot be loaded: {reason}")
