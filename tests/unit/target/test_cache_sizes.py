"""Sizes of caches, as the system's files say them."""

from __future__ import annotations

from pathlib import Path

from intarsia.target.cache_sizes import CacheSizes


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
