"""AArch64: code that LLVM makes is linked, and its instructions are decoded again, on any machine."""

from __future__ import annotations

import pytest
from tests.native_ir import EVERY_REFERENCE

from intarsia.native.machine.isa import Isa
from intarsia.native.object_code.codegen import CodegenOptions, generate_object_code
from intarsia.native.object_code.elf_file import ObjectFile, read_object_file
from intarsia.native.object_code.object_code import Layout, Outside, build_image, lay_out
from intarsia.native.object_code.relocation import Fixup, UnknownRelocationError
from intarsia.native.object_code.relocation_aarch64 import RelocationsAArch64
from intarsia.support.errors import ArtifactError

RULES = RelocationsAArch64()
BASE = 0x7F12_3456_7000
EXP = 0x7FAB_CDEF_0123_4


def word(image: bytes | bytearray, at: int, size: int = 4) -> int:
    return int.from_bytes(image[at : at + size], "little")


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def page_named(instruction: int, place: int) -> int:
    """The address that `adrp` at a place computes."""
    assert instruction & 0x9F000000 == 0x90000000
    pages = signed((instruction >> 5 & 0x7FFFF) << 2 | instruction >> 29 & 3, 21)
    return (place & ~0xFFF) + pages * 4096


def offset_named(instruction: int) -> int:
    """The offset that `add` or a load or store adds to a register."""
    offset = instruction >> 10 & 0xFFF
    if instruction & 0x7F000000 == 0x11000000:
        return offset
    scale = instruction >> 30
    if instruction & 0x04800000 == 0x04800000:  # 128 bits
        scale = 4
    return offset << scale


def call_target(instruction: int, place: int) -> int:
    """Where `bl` or `b` at a place goes."""
    assert instruction & 0x7C000000 == 0x14000000
    return place + 4 * signed(instruction & 0x3FFFFFF, 26)


@pytest.fixture(scope="module")
def linked() -> tuple[ObjectFile, Layout, bytearray]:
    isa = Isa("aarch64", "generic", ("neon",))
    file = read_object_file(generate_object_code(EVERY_REFERENCE, isa, CodegenOptions()))
    layout = lay_out(file, RULES)
    return file, layout, build_image(file, layout, RULES, BASE, Outside({"exp": EXP}, frozenset()))


def address_of(file: ObjectFile, layout: Layout, number: int) -> int:
    symbol = file.symbols[number]
    assert symbol.section is not None
    return BASE + layout.offsets[symbol.section] + symbol.value


def test_every_reference_names_its_symbol(linked: tuple[ObjectFile, Layout, bytearray]) -> None:
    file, layout, image = linked
    seen = set()
    for relocation in file.relocations:
        at = layout.offsets[relocation.section] + relocation.offset
        symbol, instruction = relocation.symbol, word(image, at)
        seen.add(relocation.kind)
        if relocation.kind in {311, 312}:
            slot = BASE + layout.slots[symbol]
            assert word(image, layout.slots[symbol], 8) == address_of(file, layout, symbol)
            expected = slot
        elif file.symbols[symbol].is_defined:
            expected = address_of(file, layout, symbol) + relocation.addend
        if relocation.kind in {275, 311}:
            assert page_named(instruction, BASE + at) == expected & ~0xFFF
        elif relocation.kind in {277, 278, 284, 285, 286, 299, 312}:
            assert offset_named(instruction) == expected & 0xFFF
        elif relocation.kind == 257:
            assert word(image, at, 8) == expected
        elif not file.symbols[symbol].is_defined:
            assert call_target(instruction, BASE + at) == BASE + layout.stubs[symbol]
        else:
            assert call_target(instruction, BASE + at) == expected
    assert {257, 275, 277, 283, 311, 312} <= seen


def test_stub_jumps_to_the_function(linked: tuple[ObjectFile, Layout, bytearray]) -> None:
    _, layout, image = linked
    ((symbol, at),) = layout.stubs.items()
    load = word(image, at + 4)
    slot = page_named(word(image, at), BASE + at) + offset_named(load)
    assert slot == BASE + layout.slots[symbol]
    assert word(image, slot - BASE, 8) == EXP
    assert load & 0xFFC003FF == 0xF9400210  # ldr x16, [x16, ...]
    assert word(image, at + 8) == 0xD61F0200  # br x16


def apply(kind: int, target: int, instruction: int = 0, addend: int = 0, place: int = BASE) -> int:
    image = bytearray(instruction.to_bytes(8, "little"))
    RULES.apply(image, Fixup(kind, 0, place, target, addend, 0))
    return word(image, 0, 8)


@pytest.mark.parametrize(("kind", "scale"), [(278, 0), (284, 1), (285, 2), (286, 3), (299, 4)])
def test_loads_of_every_size(kind: int, scale: int) -> None:
    assert apply(kind, 0x12340 + 16 * 5, 0x3D400000) == 0x3D400000 | (0x390 >> scale) << 10
    if scale:
        with pytest.raises(ArtifactError, match="not aligned"):
            apply(kind, 0x12341)


def test_words_and_distances() -> None:
    assert apply(257, 0x1234, addend=-4) == 0x1230
    assert apply(258, 0x1234) == 0x1234
    assert apply(261, BASE - 8) == (1 << 32) - 8
    assert apply(260, BASE - 8) == (1 << 64) - 8


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (275, BASE + (1 << 33)),
        (283, BASE + (1 << 28)),
        (283, BASE + 2),
        (258, BASE),
        (261, BASE + (1 << 40)),
    ],
)
def test_too_far_is_an_error(kind: int, target: int) -> None:
    with pytest.raises(ArtifactError, match="too far away"):
        apply(kind, target)


def test_unknown_kinds() -> None:
    with pytest.raises(UnknownRelocationError, match="unknown relocation 512 of AArch64"):
        RULES.needs_slot(512)
