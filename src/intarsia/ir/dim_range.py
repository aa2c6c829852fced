"""Ranges of symbolic dimensions, which a program declares for its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from intarsia.ir.attributes import Attrs
from intarsia.ir.expr import Function, with_fields
from intarsia.ir.module import IRModule

DIM_RANGES: Final = "dim_ranges"
"""Attribute of @main: name, smallest and largest size of each symbolic dimension with a range."""


@dataclass(frozen=True, slots=True)
class DimRange:
    """The sizes that a symbolic dimension may have.

    Attributes:
        low: Smallest size.
        high: Largest size.
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        """Refuse an empty range."""
        if not 0 <= self.low <= self.high:
            raise ValueError(f"a dimension of {self.low} to {self.high} has no size")

    def __contains__(self, size: int) -> bool:
        return self.low <= size <= self.high

    def __str__(self) -> str:
        return f"{self.low} to {self.high}"


def dim_ranges(function: Function) -> dict[str, DimRange]:
    """Return the declared ranges by name of the dimension."""
    entries = cast("tuple[tuple[str, int, int], ...]", function.attrs.get(DIM_RANGES, ()))
    return {name: DimRange(low, high) for name, low, high in entries}


def with_dim_ranges(mod: IRModule, ranges: Mapping[str, DimRange]) -> IRModule:
    """Return the module with ranges of the dimensions of @main's parameters; the same if there are none."""
    if not ranges:
        return mod
    main = mod["main"]
    entries = tuple((name, item.low, item.high) for name, item in ranges.items())
    return mod.with_function("main", with_fields(main, attrs=Attrs({**main.attrs, DIM_RANGES: entries})))
