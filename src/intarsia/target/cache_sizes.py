"""Sizes of a core's caches, by which loops are blocked; they do not restrict what code may use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from intarsia.target.cpu import cache_bytes


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """Sizes of the caches of a core, in bytes; the defaults are those of a small machine.

    Attributes:
        first: Size of the first-level data cache, in bytes.
        second: Size of the second-level cache, in bytes.
        third: Size of the last-level cache, which cores share, in bytes.
    """

    first: int = 32 * 1024
    second: int = 512 * 1024
    third: int = 8 * 1024 * 1024

    @classmethod
    def host(cls, root: Path = Path("/")) -> CacheSizes:
        """Read the sizes from the system's files; missing ones are the defaults."""
        sizes_by_cache = cache_bytes(root)
        sizes = [
            sizes_by_cache.get((level, "Data")) or sizes_by_cache.get((level, "Unified"))
            for level in (1, 2, 3)
        ]
        default = cls()
        return cls(sizes[0] or default.first, sizes[1] or default.second, sizes[2] or default.third)

    def __str__(self) -> str:
        """The sizes in KiB, e.g. "32K 512K 8192K"."""
        return " ".join(f"{size // 1024}K" for size in (self.first, self.second, self.third))
