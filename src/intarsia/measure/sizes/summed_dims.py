"""Dimensions whose names say that they are sums of others, as exporters of decoders write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from intarsia.ir import DimRange, Function, SymbolicDim, TensorType
from intarsia.measure.sizes.size_sample import SizeSample

Summands: TypeAlias = "tuple[str | int, ...]"
"""Names of dimensions, and numbers."""

_TOTAL: Final = "total_"
_PAST: Final = "past_"


def summed_dims(main: Function) -> dict[str, Summands]:
    """Return the summands of each dimension of the parameters that is named as a sum of others.

    "past + new" is one where the parameters have the dimensions past and new. So is "total_length" where they
    have past_length and length, as onnxruntime-genai names them.
    """
    types = (param.checked_type for param in main.params)
    dims = [dim for type_ in types if isinstance(type_, TensorType) for dim in type_.shape or ()]
    names = {dim.name for dim in dims if isinstance(dim, SymbolicDim)}
    sums: dict[str, Summands] = {}
    for name in names:
        new = name.removeprefix(_TOTAL)
        if new != name and {new, _PAST + new} <= names:
            sums[name] = (_PAST + new, new)
            continue
        parts = [part.strip() for part in name.split("+")]
        is_known = all(part in names or (part.isascii() and part.isdigit()) for part in parts)
        if len(parts) > 1 and is_known and any(part in names for part in parts):
            sums[name] = tuple(int(part) if part.isdigit() else part for part in parts)
    return sums


def sum_range(summands: Summands, ranges: Mapping[str, DimRange]) -> DimRange:
    """Return the range of a sum, given those of its summands."""
    parts = [DimRange(item, item) if isinstance(item, int) else ranges[item] for item in summands]
    return DimRange(sum(part.low for part in parts), sum(part.high for part in parts))


def with_sums(
    samples: Sequence[SizeSample], sums: Mapping[str, Summands], fixed: Mapping[str, int]
) -> tuple[SizeSample, ...]:
    """Return samples with the sizes of sums.

    Args:
        samples: Sizes of the other dimensions.
        sums: Summands by the name of a dimension.
        fixed: Sizes of dimensions that have one size only.
    """
    return tuple(
        replace(
            sample,
            sizes={
                **sample.sizes,
                **{name: _sum(summands, {**fixed, **sample.sizes}) for name, summands in sums.items()},
            },
        )
        for sample in samples
    )


def _sum(summands: Summands, sizes: Mapping[str, int]) -> int:
    return sum(item if isinstance(item, int) else sizes[item] for item in summands)
