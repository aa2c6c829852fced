"""Sizes of caches, as the system's files say them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from intarsia.native.machine.cache_sizes import CacheSizes
from intarsia.native.machine.isa import Isa


def test_files_are_read(tmp_path: Path) -> None:
    caches = (
        ("1", "Instruction", "64K"),
        ("1", "Data", "48K"),
        ("2", "Unified", "2048K"),
        ("3", "Unified", "32M"),
    )
    for number, cache in enumerate(caches):
        folder = tmp_path / f"sys/devices/system/cpu/cpu0/cache/index{number}"
        folder.mkdir(parents=True)
        for name, content in zip(("level", "type", "size"), cache, strict=True):
            (folder / name).write_text(f"{content}\n")
    found = CacheSizes.host(tmp_path)
    assert found == CacheSizes(48 << 10, 2 << 20, 32 << 20)
    assert str(found) == "48K 2048K 32768K"


def test_what_is_not_known_is_small(tmp_path: Path) -> None:
    assert CacheSizes.host(tmp_path) == CacheSizes()


def test_they_are_no_part_of_the_instruction_set() -> None:
    host = Isa.host()
    other = replace(host, caches=CacheSizes(1, 2, 3))
    assert other == host
    assert other.digest == host.digest
    assert host.caches == Isa.host_without_compiler().caches == CacheSizes.host()
