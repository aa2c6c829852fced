"""Sizes of a core's caches: they decide how loops are blocked, and not what code may use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from intarsia.target.cpu import cache_bytes


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """Bytes of the caches that a core sees; without better knowledge those of a small machine of our days.

    Attributes:
        first: The first-level cache of data.
        second: The second-level cache.
        third: The last one, which cores share.
    """

    first: int = 32 * 1024
    second: int = 512 * 1024
    third: int = 8 * 1024 * 1024

    @classmethod
    def host(cls, root: Path = Path("/")) -> CacheSizes:
        """What the system's files say; what they do not say is as in `CacheSizes()`."""
        known = cache_bytes(root)
        sizes = [known.get((level, "Data")) or known.get((level, "Unified")) for level in (1, 2, 3)]
        default = cls()
        return cls(sizes[0] or default.first, sizes[1] or default.second, sizes[2] or default.third)

    def __str__(self) -> str:
        """The sizes in KiB, e.g. "32K 512K 8192K"."""
        return " ".join(f"{size // 1024}K" for size in (self.first, self.second, self.third))
