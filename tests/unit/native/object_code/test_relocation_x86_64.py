"""x86-64: values of relocations, from the formulas of its supplement to the ABI."""

from __future__ import annotations

import pytest

from intarsia.native.object_code.relocation import Fixup, UnknownRelocationError
from intarsia.native.object_code.relocation_x86_64 import RelocationsX8664
from intarsia.support.errors import ArtifactError

RULES = RelocationsX8664()
PLACE, TARGET, SLOT = 0x7F00_0000_1000, 0x7F00_0000_0800, 0x7F00_0000_3000


def apply(kind: int, target: int = TARGET, addend: int = 0) -> int:
    image = bytearray(8)
    RULES.apply(image, Fixup(kind, 0, PLACE, target, addend, SLOT))
    return int.from_bytes(image, "little")


@pytest.mark.parametrize(
    ("kind", "target", "addend", "value"),
    [
        (0, TARGET, 0, 0),
        (1, TARGET, -8, TARGET - 8),
        (1, 0, -8, (1 << 64) - 8),
        (2, TARGET, -4, (1 << 32) - 0x804),
        (4, TARGET, -4, (1 << 32) - 0x804),
        (9, TARGET, -4, 0x1FFC),
        (41, TARGET, -4, 0x1FFC),
        (42, TARGET, -4, 0x1FFC),
        (10, 0xFFFF_FFF0, 8, 0xFFFF_FFF8),
        (11, 0x1000, -0x2000, (1 << 32) - 0x1000),
        (24, TARGET, 0, (1 << 64) - 0x800),
    ],
)
def test_values(kind: int, target: int, addend: int, value: int) -> None:
    assert apply(kind, target, addend) == value


@pytest.mark.parametrize(
    ("kind", "target"), [(2, PLACE + (1 << 31)), (4, PLACE - (1 << 31) - 1), (10, -1), (11, 1 << 31)]
)
def test_too_far_is_an_error(kind: int, target: int) -> None:
    with pytest.raises(ArtifactError, match="too far away"):
        apply(kind, target)


def test_place_at_the_end_of_the_image() -> None:
    with pytest.raises(ArtifactError, match="outside its section"):
        RULES.apply(bytearray(10), Fixup(1, 4, PLACE, TARGET, 0, SLOT))


def test_stub_jumps_through_its_slot() -> None:
    assert RULES.stub(PLACE, SLOT) == b"\xff\x25" + (SLOT - PLACE - 6).to_bytes(4, "little") + b"\xcc\xcc"


def test_kinds() -> None:
    assert [kind for kind in (0, 1, 2, 4, 9, 10, 11, 24, 41, 42) if RULES.needs_slot(kind)] == [9, 41, 42]
    assert RULES.is_call(4)
    assert not RULES.is_call(2)
    with pytest.raises(UnknownRelocationError, match="unknown relocation 25 of x86-64"):
        RULES.needs_slot(25)
