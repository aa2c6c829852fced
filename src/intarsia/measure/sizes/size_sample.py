"""One size for each symbolic dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class SizeSample:
    """Sizes at which a program is run.

    Attributes:
        sizes: Sizes by name of the dimension.
        weight: Share of the calls that have these sizes; 0 for sizes at which results are checked only.
        is_named: Whether the user names these sizes, rather than a range that has them.
    """

    sizes: Mapping[str, int]
    weight: float = 0.0
    is_named: bool = False

    def __post_init__(self) -> None:
        """Take a private copy."""
        object.__setattr__(self, "sizes", MappingProxyType(dict(self.sizes)))

    @property
    def label(self) -> str:
        """The sizes as text: batch=8, seq=128."""
        return ", ".join(f"{name}={size}" for name, size in self.sizes.items())

    @property
    def key(self) -> tuple[tuple[str, int], ...]:
        """The sizes as a value that can be compared."""
        return tuple(self.sizes.items())
