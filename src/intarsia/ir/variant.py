"""Variants of @main: functions that are run in its place where symbolic dimensions have certain sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from intarsia.ir.cache import CACHE
from intarsia.ir.dim_range import DIM_RANGES
from intarsia.ir.expr import Function, with_fields
from intarsia.ir.module import IRModule

VARIANT_SIZES: Final = "variant_sizes"
"""Attribute of a variant: name and size of each dimension for which it stands."""


def variants(mod: IRModule) -> dict[str, dict[str, int]]:
    """Return the sizes of each variant of a module's @main, by the name of the function."""
    return {var.name: sizes for var, item in mod.graph_functions.items() if (sizes := variant_sizes(item))}


def variant_sizes(function: Function) -> dict[str, int]:
    """Return the sizes for which a function stands; none for a function that is no variant."""
    return dict(cast("tuple[tuple[str, int], ...]", function.attrs.get(VARIANT_SIZES, ())))


def as_variant(function: Function, sizes: Mapping[str, int]) -> Function:
    """Return a function that was @main as a variant for some sizes."""
    attrs = function.attrs.updated(**{CACHE: None, DIM_RANGES: None, VARIANT_SIZES: tuple(sizes.items())})
    return with_fields(function, attrs=attrs)
